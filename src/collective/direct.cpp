#include <algorithm>

#include "rounds.hpp"

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

}  // namespace

std::unique_ptr<const SteppedAlgorithm> make_direct(const GroupTask& task) { return std::make_unique<Direct>(task); }

}  // namespace orrery::collective
