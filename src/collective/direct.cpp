#include <algorithm>

#include "rounds.hpp"
#include "sliding_evaluation.hpp"

namespace orrery::collective {
namespace {

/// Every position sends a block to every other one at once. A window limits the messages that a position sends at a
/// time: first to the distances 1 .. w, then w + 1 .. 2w, and so on. An all-reduce scatters the blocks and adds them
/// up, and then gathers them.
class Direct final : public RoundAlgorithm {
 public:
  explicit Direct(const GroupTask& task) : RoundAlgorithm(task, rounds_of(task)) {}

  BlocksOfMessage blocks(std::uint32_t position, std::uint64_t k, std::uint32_t message) const override {
    const std::uint32_t n = task().size;
    const std::uint32_t to = at(position, rounds()[k].first + message);
    if (task().kind == Kind::all_to_all) return {{position * n + to}, false};
    const bool adds = task().scatters() && (!task().gathers() || k < rounds().size() / 2);
    return {{adds ? to : position}, adds};
  }

 private:
  /// Under `astra-sim` rules (GroupTask::reduces_every_message is false) every second round of a reduce-scatter and
  /// every fourth of an all-reduce pays a reduction, from the first on, as measured in ASTRA-sim 2. Without a window
  /// that is the first round alone, under both rules.
  static std::vector<Round> rounds_of(const GroupTask& task) {
    const std::uint32_t farthest = task.size - 1;
    const std::uint32_t window = task.window == 0 ? farthest : std::min(task.window, farthest);
    const std::uint32_t half = (farthest - 1) / window + 1;
    const std::uint32_t count = task.scatters() && task.gathers() ? 2 * half : half;
    const std::uint32_t period = task.gathers() ? 4 : 2;
    std::vector<Round> rounds;
    for (std::uint32_t k = 0; k < count; ++k) {
      const std::uint32_t first = k % half * window + 1;
      const bool pays = task.scatters() && task.reduces && (task.reduces_every_message ? k < half : k % period == 0);
      rounds.push_back({.bytes = task.block(),
                        .first = first,
                        .last = std::min(farthest, first + window - 1),
                        .reduced = pays ? task.block() : Bytes(0)});
    }
    return rounds;
  }
};

/// The same with a sliding window (Rules::sliding_windows): a step is one message, and a position may be in several.
class SlidingDirect final : public RoundAlgorithm {
 public:
  explicit SlidingDirect(const GroupTask& task) : RoundAlgorithm(task, rounds_of(task)) {
    const std::uint32_t farthest = task.size - 1;
    window_.window = task.window == 0 ? farthest : std::min(task.window, farthest);
    window_.num_messages = static_cast<std::uint32_t>(num_steps());
    window_.first_half = task.scatters() && task.gathers() ? farthest : 0;
    window_.reduces = task.scatters() && task.reduces;
    window_.cycle = task.in_subgroup ? farthest * window_.window : window_.window;
  }

  const SlidingWindow* sliding_window() const override { return &window_; }
  /// A position waits for messages of others, who have sent them without waiting: once in each half.
  std::uint64_t fewest_endpoint_delays() const override { return window_.first_half > 0 ? 3 : 2; }

  BlocksOfMessage blocks(std::uint32_t position, std::uint64_t k, std::uint32_t) const override {
    const std::uint32_t to = at(position, rounds()[k].first);
    if (task().kind == Kind::all_to_all) return {{position * task().size + to}, false};
    const bool adds = task().scatters() && k + 1 < task().size;
    return {{adds ? to : position}, adds};
  }

  /// Without a window nobody waits for credits in one half.
  std::unique_ptr<GroupEvaluator> closed_form(const GroupContext& context) const override {
    if (window_.first_half > 0 || window_.window < task().size - 1)
      return evaluate_sliding(window_, task().block(), context);
    const Round all{
        .bytes = task().block(), .last = task().size - 1, .reduced = window_.reduces ? task().block() : Bytes(0)};
    return evaluate_rounds({&all, 1}, context);
  }

 private:
  static std::vector<Round> rounds_of(const GroupTask& task) {
    std::vector<Round> rounds;
    for (int half = task.scatters() && task.gathers() ? 2 : 1; half > 0; --half)
      for (std::uint32_t d = 1; d < task.size; ++d)
        rounds.push_back({.bytes = task.block(),
                          .first = d,
                          .last = d,
                          .reduced = task.scatters() && task.reduces ? task.block() : Bytes(0)});
    return rounds;
  }

  SlidingWindow window_;
};

}  // namespace

std::unique_ptr<const SteppedAlgorithm> make_direct(const GroupTask& task) {
  if (task.slides) return std::make_unique<SlidingDirect>(task);
  return std::make_unique<Direct>(task);
}

}  // namespace orrery::collective
