#include "orrery/network/flit_traffic.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include "orrery/base/mix.hpp"
#include "routers.hpp"

namespace orrery::network {
namespace {

using flit::Routers;

constexpr FlitPattern patterns[] = {
    {"uniform", "each packet goes to an NPU that is drawn",
     [](std::uint32_t, std::uint32_t width, std::uint32_t height, std::uint64_t draw) {
       return static_cast<std::uint32_t>((draw >> 32U) * (width * height) >> 32U);
     }},
    {"transpose", "column and row change places",
     [](std::uint32_t npu, std::uint32_t width, std::uint32_t, std::uint64_t) {
       return npu % width * width + npu / width;
     },
     true, true},
    {"neighbor", "to the next column and the next row",
     [](std::uint32_t npu, std::uint32_t width, std::uint32_t height, std::uint64_t) {
       return (npu / width + 1) % height * width + (npu % width + 1) % width;
     },
     false, true},
    {"tornado", "almost half way round in its row",
     [](std::uint32_t npu, std::uint32_t width, std::uint32_t, std::uint64_t) {
       return npu / width * width + (npu % width + (width - 1) / 2) % width;
     }},
    {"complement", "to the NPU that is as far from the last one as this is from the first one",
     [](std::uint32_t npu, std::uint32_t width, std::uint32_t height, std::uint64_t) {
       return width * height - 1 - npu;
     }},
};

/// When NPUs begin packets, and for whom. Draws are numbered by NPU.
class Generator {
 public:
  Generator(const FlitTraffic& traffic, std::uint32_t num_npus)
      : traffic_(traffic), probability_(std::min(traffic.rate / traffic.rules.packet, 1.0)), npus_(num_npus) {
    for (std::uint32_t npu = 0; npu < num_npus; ++npu) npus_[npu].next = gap(npu);
  }

  std::uint64_t next(std::uint32_t npu) const { return npus_[npu].next; }
  std::uint32_t begin_packet(std::uint32_t npu) {
    npus_[npu].next += 1 + gap(npu);
    return traffic_.pattern->destination(npu, traffic_.width, traffic_.height, draw(npu));
  }

 private:
  struct Npu {
    std::uint64_t next = 0;
    std::uint64_t draws = 0;
  };

  std::uint64_t draw(std::uint32_t npu) { return mix(mix(traffic_.seed + 0x5eedU, npu), npus_[npu].draws++); }
  /// Returns the cycles without a packet before the next one: a geometric distribution.
  std::uint64_t gap(std::uint32_t npu) {
    if (probability_ >= 1) return 0;
    const double uniform = (static_cast<double>(draw(npu) >> 11U) + 0.5) * 0x1p-53;
    return static_cast<std::uint64_t>(std::min(std::log(uniform) / std::log1p(-probability_), 1e15));
  }

  const FlitTraffic& traffic_;
  double probability_;
  std::vector<Npu> npus_;
};

/// Gives the latencies of the packets in ascending order to the figures.
void add_latencies(std::vector<std::uint64_t>& latencies, FlitTrafficFigures& figures) {
  figures.packets = latencies.size();
  if (latencies.empty()) return;
  std::ranges::sort(latencies);
  double sum = 0;
  for (const std::uint64_t latency : latencies) sum += static_cast<double>(latency);
  figures.latency = sum / static_cast<double>(latencies.size());
  figures.latency_99 = latencies[(latencies.size() * 99 + 99) / 100 - 1];
  figures.latency_most = latencies.back();
}

}  // namespace

std::span<const FlitPattern> FlitPattern::all() { return patterns; }

FlitTrafficFigures simulate_traffic(const FlitTraffic& traffic) {
  const flit::Layout layout{traffic.shape, traffic.width, traffic.height};
  FlitRules rules = traffic.rules;
  rules.seed = traffic.seed;
  Routers routers(layout, rules);
  Generator generator(traffic, layout.num_npus());
  const std::uint64_t begin = traffic.warm_up, end = begin + traffic.measured, last = end + 10 * traffic.measured;
  std::vector<std::uint64_t> latencies;
  std::uint64_t delivered_before = 0, delivered_after = 0;
  FlitTrafficFigures figures;
  while (routers.cycle() < end || (!routers.is_idle() && routers.cycle() < last)) {
    const std::uint64_t now = routers.cycle();
    if (now == begin) delivered_before = routers.flits_delivered();
    if (now == end) delivered_after = routers.flits_delivered();
    for (std::uint32_t npu = 0; npu < layout.num_npus() && now < end; ++npu) {
      if (generator.next(npu) > now || !routers.has_injected_all(npu)) continue;
      const std::uint64_t born = generator.next(npu);
      routers.inject(npu, generator.begin_packet(npu), rules.packet, born);
    }
    routers.step();
    for (const Routers::Delivered& packet : routers.delivered())
      if (packet.note >= begin && packet.note < end) latencies.push_back(now - packet.note);
  }
  if (routers.cycle() == end) delivered_after = routers.flits_delivered();
  for (std::uint32_t npu = 0; npu < layout.num_npus(); ++npu)
    figures.is_saturated |= generator.next(npu) + traffic.measured / 10 < end;
  add_latencies(latencies, figures);
  figures.accepted = static_cast<double>(delivered_after - delivered_before) / static_cast<double>(traffic.measured) /
                     layout.num_npus();
  figures.flit_hops = routers.flit_hops();
  figures.cycles = routers.cycle();
  if (routers.flits_delivered() > 0)
    figures.routers = static_cast<double>(routers.flit_hops()) / static_cast<double>(routers.flits_delivered());
  return figures;
}

}  // namespace orrery::network
