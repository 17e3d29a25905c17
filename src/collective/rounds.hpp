#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "algorithm.hpp"

namespace orrery::collective {

/// Steps in a row in which every position does the same: it sends one message to each position at the distances `first`
/// to `last`, and waits for those who send to it.
struct Round {
  std::uint64_t count = 1;  ///< so many steps in a row are alike
  Bytes bytes = {};         ///< size of each message
  std::uint32_t first = 1, last = 1;
  bool by_xor = false;  ///< the position at distance d of position i is i xor d; else (i + d) mod n
  Bytes reduced = {};   ///< bytes reduced at the end of the step, 0: none
};

/// Evaluates rounds one by one. Cost of a run of a group of n: for each round O(n) where positions exchange in pairs or
/// where each sends to all others over links that are all alike, else O(n * messages of a position).
std::unique_ptr<GroupEvaluator> evaluate_rounds(std::span<const Round> rounds, const GroupContext& context);

/// An algorithm in which every position does the same in a step: a list of rounds.
class RoundAlgorithm : public SteppedAlgorithm {
 public:
  std::span<const Round> rounds() const { return rounds_; }
  std::uint64_t num_steps() const { return ends_.back(); }

  std::uint64_t num_steps(std::uint32_t) const final { return num_steps(); }
  /// The messages of the largest round.
  std::uint32_t messages_at_once() const final;
  void count_bytes(std::uint64_t chunks, SentBytes& sent) const final;
  std::uint64_t fewest_endpoint_delays() const override;
  Symmetry symmetry() const final;

 protected:
  /// One round or more.
  RoundAlgorithm(const GroupTask& task, std::vector<Round> rounds);

  /// Returns the position at this distance.
  std::uint32_t at(std::uint32_t position, std::uint64_t distance) const {
    return static_cast<std::uint32_t>((position + distance) % task().size);
  }

 private:
  const Round& round_of(std::uint64_t step) const;
  void fill(std::uint32_t position, std::uint64_t k, Step& out) const final;
  std::unique_ptr<GroupEvaluator> evaluate(const GroupContext& context) const final;

  std::vector<Round> rounds_;
  std::vector<std::uint64_t> ends_;  ///< [rounds] steps up to the end of each
};

}  // namespace orrery::collective
