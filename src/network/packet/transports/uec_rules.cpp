#include "uec_rules.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "orrery/base/error.hpp"

namespace orrery::network {
namespace {

constexpr std::uint32_t most_sources = 64;  // sources of paths that are measured
constexpr Time least_time_out = Time::from_ns(15'000);
constexpr Time least_round_trip = Time::from_ps(2);  // three quarters of it are more than 0

std::uint64_t up_to_packets(std::uint64_t bytes, std::uint64_t mtu) { return (bytes + mtu - 1) / mtu * mtu; }

}  // namespace

UecFigures::UecFigures(const PacketGraph& graph, const PacketRouter& router, const PacketRules& rules) {
  if (graph.num_hosts() > 0 && !graph.ports(graph.host(0)).empty())
    rate = graph.way_of(graph.ports(graph.host(0))[0]).rate;
  if (rate == 0) return;
  require_room_for_answers(graph, rules);
  measure(graph, router, rules);
  round_trip = std::max(round_trip, least_round_trip);
  const std::uint64_t mtu = rules.full_packet();
  const auto product =
      static_cast<std::uint64_t>(static_cast<unsigned __int128>(round_trip.ps()) * rate / 8'000'000'000'000U);
  const std::uint64_t in_packets = std::max(up_to_packets(product, mtu), mtu);
  queue = rules.queue.value_or(in_packets * (rules.trimming ? 1 : 5));
  marks = {up_to_packets(in_packets / 5, mtu), up_to_packets(in_packets * 4 / 5, mtu), 1};
  time_out = least_time_out + transmission_time(queue, rate, rules.tick) * 6;
}

/// Refuses a link whose way back carries fewer acknowledgements than its way there carries packets: these would wait
/// longer and longer, and time-outs would send the packets again.
void UecFigures::require_room_for_answers(const PacketGraph& graph, const PacketRules& rules) {
  for (const PacketGraph::Link& link : graph.links()) {
    const std::uint64_t there = link.rate, back = link.way_to(link.a).rate;
    const std::uint64_t less = std::min(there, back), more = std::max(there, back);
    const auto needed =
        static_cast<std::uint64_t>(static_cast<unsigned __int128>(more) * rules.acknowledgement / rules.full_packet());
    if (less < needed)
      throw Error(
          ErrorCode::bad_input,
          fmt::format("the link between the nodes {} and {} has {} b/s one way and {} b/s the other way, which is "
                      "too slow for the acknowledgements of UEC; expected at least {} b/s both ways",
                      link.a, link.b, more, less, needed));
  }
}

/// Finds the longest round trip between hosts: from all hosts if they are few, otherwise from some hosts to all.
void UecFigures::measure(const PacketGraph& graph, const PacketRouter& router, const PacketRules& rules) {
  const Time at_link = transmission_time(rules.full_packet(), rate, rules.tick) +
                       transmission_time(rules.acknowledgement, rate, rules.tick);
  const std::uint32_t stride = (graph.num_hosts() + most_sources - 1) / most_sources;
  for (std::uint32_t a = 0; a < graph.num_hosts(); a += stride) {
    for (std::uint32_t b = 0; b < graph.num_hosts(); ++b) {
      Time time;
      std::uint32_t node = graph.host(a), hops = 0;
      const std::uint32_t destination = graph.host(b);
      for (; node != destination && hops <= graph.num_nodes(); ++hops) {
        const auto ports = router.ports(node, destination, Time::zero());
        if (ports.empty()) break;
        const PacketGraph::Port& port = graph.ports(node)[ports[0]];
        time += graph.way_of(port).delay + graph.way_into(port).delay + at_link;
        node = port.peer;
      }
      if (node == destination) round_trip = std::max(round_trip, time);
    }
  }
}

UecRun::UecRun(const PacketGraph& graph, const PacketRouter& router, const PacketRules& its_rules)
    : rules(its_rules), figures(graph, router, rules), by_credit(rules.control.name() == "rccc") {
  for (std::uint32_t host = 0; host < graph.num_hosts(); ++host)
    for (const PacketGraph::Port& port : graph.ports(graph.host(host))) {
      const std::uint64_t rate = graph.way_of(port).rate;
      nscc_.try_emplace(rate, figures.round_trip, rate, mtu(), rules.payload, rules.trimming);
    }
}

}  // namespace orrery::network
