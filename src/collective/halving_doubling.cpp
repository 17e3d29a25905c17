#include <bit>

#include "rounds.hpp"

namespace orrery::collective {
namespace {

/// Position i exchanges with i xor 2^j. Recursive halving, j = 0, 1, ...: each sends half of what it has left to add
/// up. Recursive doubling, in the opposite order: each sends all that it has. Source: Thakur, Rabenseifner, Gropp,
/// "Optimization of collective communication operations in MPICH", IJHPCA 19(1), 2005.
class HalvingDoubling final : public RoundAlgorithm {
 public:
  explicit HalvingDoubling(const GroupTask& task) : RoundAlgorithm(task, rounds_of(task)) {}

  /// Halving: the blocks that agree with the partner in the bits 0 .. j. Doubling: those that agree with the position.
  BlocksOfMessage blocks(std::uint32_t position, std::uint64_t k, std::uint32_t) const override {
    const bool halves = task().scatters() && k < levels(task());
    const std::uint32_t bit = rounds()[k].first;
    const std::uint32_t wanted = halves ? position ^ bit : position;
    BlocksOfMessage message{{}, halves};
    for (std::uint32_t block = 0; block < task().size; ++block)
      if (((block ^ wanted) & (2 * bit - 1)) == 0) message.blocks.push_back(block);
    return message;
  }

 private:
  static std::uint32_t levels(const GroupTask& task) {
    return static_cast<std::uint32_t>(std::bit_width(task.size) - 1);
  }

  /// Returns the bytes of the first message of the doubling. Under `astra-sim` rules an all-reduce turns back from half
  /// of its last message, cut to whole bytes, as measured in ASTRA-sim 2.
  static Bytes first_block_back(const GroupTask& task) {
    if (task.reduces_every_message || !task.scatters()) return task.block();
    return times(task.bytes / (std::uint64_t{2} * task.size), 2);
  }

  /// Each step of the halving reduces what was received. Under `astra-sim` rules it reduces what the next step receives
  /// (docs/model.md, 6), as measured in ASTRA-sim 2.
  static std::vector<Round> rounds_of(const GroupTask& task) {
    std::vector<Round> rounds;
    for (std::uint32_t j = 0; task.scatters() && j < levels(task); ++j) {
      const Bytes half = task.bytes / (std::uint64_t{2} << j);
      const bool is_last = j + 1 == levels(task);
      const Bytes reduced = task.reduces_every_message ? half
                            : is_last                  ? Bytes(0)
                                                       : task.bytes / (std::uint64_t{4} << j);
      rounds.push_back({.bytes = half,
                        .first = 1U << j,
                        .last = 1U << j,
                        .by_xor = true,
                        .reduced = task.reduces ? reduced : Bytes(0)});
    }
    const Bytes block = first_block_back(task);
    for (std::uint32_t j = levels(task); task.gathers() && j-- > 0;)
      rounds.push_back({.bytes = times(block, std::uint64_t{1} << (levels(task) - 1 - j)),
                        .first = 1U << j,
                        .last = 1U << j,
                        .by_xor = true});
    return rounds;
  }
};

}  // namespace

std::unique_ptr<const SteppedAlgorithm> make_halving_doubling(const GroupTask& task) {
  return std::make_unique<HalvingDoubling>(task);
}

}  // namespace orrery::collective
