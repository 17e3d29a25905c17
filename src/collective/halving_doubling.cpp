#include <algorithm>
#include <bit>

#include "line.hpp"
#include "steps.hpp"

namespace orrery::collective {
namespace {

// In step k place i exchanges with i xor distance:
//
//   next[i] = max(s[partner] + L, s[i] + c) + e + p        c = 0, or with rendezvous D + L
//
// The delays are the same both ways, so one value per pair does.

struct Exchange {
  std::uint32_t distance = 1;
  Ps cost = 0;           ///< e + p
  std::vector<Ps> link;  ///< L by the pair's lower place; one value if all are alike
  std::vector<Ps> stay;  ///< c, in the same way
};

class HalvingDoubling final : public LineProgram {
 public:
  HalvingDoubling(std::uint32_t size, Ps endpoint_delay, bool alike, std::vector<Exchange> steps)
      : size_(size), endpoint_delay_(endpoint_delay), alike_(alike), steps_(std::move(steps)) {
    duration_ = endpoint_delay_;
    for (const Exchange& step : steps_) {
      const Ps longest = std::max(*std::ranges::max_element(step.link), *std::ranges::max_element(step.stay));
      duration_ = plus(duration_, plus(longest, step.cost));
    }
    if (!alike_) duration_ = last_finish(*this, 0, size_);
  }

  bool alike() const override { return alike_; }
  Ps duration(std::uint64_t) const override { return duration_; }

  std::size_t memory() const override {
    return sizeof(*this) + steps_.size() * (sizeof(Exchange) + 2 * steps_[0].link.size() * sizeof(Ps));
  }

  void run(std::uint64_t, std::span<Ps> times, Scratch&) const override {
    for (std::size_t at = 0; at < times.size(); at += size_) {
      Ps* line = times.data() + at;
      for (std::size_t i = 0; i < size_; ++i) line[i] += endpoint_delay_;
      for (const Exchange& step : steps_) {
        if (alike_)
          exchange(line, step, [](std::size_t) { return std::size_t{0}; });
        else
          exchange(line, step, [](std::size_t i) { return i; });
      }
    }
  }

 private:
  template <class Pick>
  void exchange(Ps* line, const Exchange& step, Pick pick) const {
    for (std::size_t block = 0; block < size_; block += 2 * std::size_t{step.distance}) {
      for (std::size_t i = block; i < block + step.distance; ++i) {
        const Ps link = step.link[pick(i)];
        const Ps stay = step.stay[pick(i)];
        const Ps low = line[i];
        const Ps high = line[i + step.distance];
        line[i] = std::max(high + link, low + stay) + step.cost;
        line[i + step.distance] = std::max(low + link, high + stay) + step.cost;
      }
    }
  }

  std::uint32_t size_;
  Ps endpoint_delay_;
  bool alike_;
  std::vector<Exchange> steps_;
  Ps duration_ = 0;
};

Exchange make_exchange(const LineContext& context, const Step& step) {
  Exchange exchange{step.first, plus(context.endpoint_delay, context.reduction(step.reduced)), {}, {}};
  const std::uint32_t num_places = context.is_transitive() ? 1 : context.axis.size;
  for (std::uint32_t i = 0; i < num_places; ++i) {
    const std::uint32_t partner = i ^ step.first;
    exchange.link.push_back(context.link(i, partner, step.message));
    exchange.stay.push_back(context.rendezvous ? plus(exchange.link.back(), context.control(i, partner)) : 0);
  }
  return exchange;
}

}  // namespace

std::unique_ptr<LineProgram> make_halving_doubling(const PhaseShape& shape, const LineContext& context) {
  const std::uint32_t n = context.axis.size;
  ensure(std::has_single_bit(n) && shape.kind != Kind::all_to_all, "halving-doubling where it has no rule");
  const Steps steps(shape, n, context.rules);
  std::vector<Exchange> exchanges;
  for (std::uint64_t k = 0; k < steps.count(); ++k) exchanges.push_back(make_exchange(context, steps.at(k)));
  return std::make_unique<HalvingDoubling>(n, context.endpoint_delay, context.is_transitive(), std::move(exchanges));
}

}  // namespace orrery::collective
