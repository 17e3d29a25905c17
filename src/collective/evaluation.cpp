#include "evaluation.hpp"

#include <algorithm>
#include <utility>

namespace orrery::collective {
namespace {

/// See after_all_have_begun.
class AfterAllHaveBegun final : public GroupEvaluator {
 public:
  AfterAllHaveBegun(std::unique_ptr<GroupEvaluator> evaluator, std::uint32_t size, Ps endpoint_delay)
      : evaluator_(std::move(evaluator)), size_(size), delay_(times(endpoint_delay, 2)) {
    const std::vector<Ps> finishes = finishes_from_zero(*this, size);
    duration_ = std::ranges::max(finishes);
    finishes_together_ = std::ranges::min(finishes) == duration_;
  }

  bool finishes_together() const override { return finishes_together_; }
  Ps duration() const override { return duration_; }
  std::size_t memory() const override { return sizeof(*this) + evaluator_->memory(); }
  void run(std::span<Ps> times, Scratch& scratch) const override {
    for (std::size_t at = 0; at < times.size(); at += size_) {
      const std::span<Ps> group = times.subspan(at, size_);
      const Ps earliest = std::ranges::max(group) + delay_;
      evaluator_->run(group, scratch);
      for (Ps& time : group) time = std::max(time, earliest);
    }
  }

 private:
  std::unique_ptr<GroupEvaluator> evaluator_;
  std::uint32_t size_;
  Ps delay_;
  bool finishes_together_ = false;
  Ps duration_ = 0;
};

}  // namespace

std::unique_ptr<GroupEvaluator> after_all_have_begun(std::unique_ptr<GroupEvaluator> evaluator, std::uint32_t size,
                                                     Ps endpoint_delay) {
  return std::make_unique<AfterAllHaveBegun>(std::move(evaluator), size, endpoint_delay);
}

std::vector<Ps> finishes_from_zero(const GroupEvaluator& evaluator, std::size_t num_positions) {
  std::vector<Ps> times(num_positions, 0);
  Scratch scratch;
  evaluator.run(times, scratch);
  return times;
}

Ps shortest_of(const GroupEvaluator& evaluator, std::size_t num_positions) {
  const std::optional<Ps> shortest = evaluator.shortest();
  return shortest ? *shortest : std::ranges::min(finishes_from_zero(evaluator, num_positions));
}

}  // namespace orrery::collective
