#include <algorithm>
#include <bit>

#include "line.hpp"

namespace orrery::collective {
namespace {

// In step k place i exchanges with i xor distance:
//
//   next[i] = max(s[partner] + L, s[i] + c) + e + p        c = 0, or with rendezvous D + L
//
// The delays are the same both ways, so one value per pair does.

struct Step {
  std::uint32_t distance = 1;
  Ps cost = 0;           ///< e + p
  std::vector<Ps> link;  ///< L by the pair's lower place; one value if all are alike
  std::vector<Ps> stay;  ///< c, in the same way
};

class HalvingDoubling final : public LineProgram {
 public:
  HalvingDoubling(std::uint32_t size, Ps endpoint_delay, bool alike, std::vector<Step> steps)
      : size_(size), endpoint_delay_(endpoint_delay), alike_(alike), steps_(std::move(steps)) {
    duration_ = endpoint_delay_;
    for (const Step& step : steps_) {
      const Ps longest = std::max(*std::ranges::max_element(step.link), *std::ranges::max_element(step.stay));
      duration_ = plus(duration_, plus(longest, step.cost));
    }
    if (!alike_) duration_ = last_finish(*this, 0, size_);
  }

  bool alike() const override { return alike_; }
  Ps duration(std::uint64_t) const override { return duration_; }

  std::size_t memory() const override {
    return sizeof(*this) + steps_.size() * (sizeof(Step) + 2 * steps_[0].link.size() * sizeof(Ps));
  }

  void run(std::uint64_t, std::span<Ps> times, Scratch&) const override {
    for (std::size_t at = 0; at < times.size(); at += size_) {
      Ps* line = times.data() + at;
      for (std::size_t i = 0; i < size_; ++i) line[i] += endpoint_delay_;
      for (const Step& step : steps_) {
        if (alike_)
          exchange(line, step, [](std::size_t) { return std::size_t{0}; });
        else
          exchange(line, step, [](std::size_t i) { return i; });
      }
    }
  }

 private:
  template <class Pick>
  void exchange(Ps* line, const Step& step, Pick pick) const {
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
  std::vector<Step> steps_;
  Ps duration_ = 0;
};

Step make_step(const LineContext& context, std::uint32_t distance, Bytes message, Ps reduction) {
  Step step{distance, plus(context.endpoint_delay, reduction), {}, {}};
  const std::uint32_t num_places = context.is_transitive() ? 1 : context.axis.size;
  for (std::uint32_t i = 0; i < num_places; ++i) {
    const std::uint32_t partner = i ^ distance;
    step.link.push_back(context.link(i, partner, message));
    step.stay.push_back(context.rendezvous ? plus(step.link.back(), context.control(i, partner)) : 0);
  }
  return step;
}

}  // namespace

std::unique_ptr<LineProgram> make_halving_doubling(const PhaseShape& shape, const LineContext& context) {
  const std::uint32_t n = context.axis.size;
  check(std::has_single_bit(n) && shape.kind != Kind::all_to_all, "halving-doubling where it has no rule");
  const auto levels = static_cast<std::uint32_t>(std::bit_width(n) - 1);
  const bool every = context.topology.rules().reduce_every_message;
  std::vector<Step> steps;
  if (shape.kind != Kind::all_gather) {
    for (std::uint32_t j = 0; j < levels; ++j) {
      // docs/model.md, 6.3: the reduction of what was received; else, as measured, of the next step's message.
      Ps reduction = 0;
      if (shape.reduces && every) reduction = context.reduction(shape.size / (std::uint64_t{2} << j));
      if (shape.reduces && !every && j + 1 < levels)
        reduction = context.reduction(shape.size / (std::uint64_t{4} << j));
      steps.push_back(make_step(context, 1U << j, shape.size / (std::uint64_t{2} << j), reduction));
    }
  }
  if (shape.kind != Kind::reduce_scatter) {
    const Bytes shard = message_size(shape, n);
    for (std::uint32_t j = levels; j-- > 0;)
      steps.push_back(make_step(context, 1U << j, times(shard, std::uint64_t{1} << (levels - 1 - j)), 0));
  }
  return std::make_unique<HalvingDoubling>(n, context.endpoint_delay, context.is_transitive(), std::move(steps));
}

}  // namespace orrery::collective
