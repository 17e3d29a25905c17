#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <tuple>
#include <utility>
#include <vector>

#include "algorithm.hpp"

namespace orrery::collective::test {

/// A position and one of its steps.
using StepKey = std::pair<std::uint32_t, std::uint64_t>;

/// The steps of all positions, and for each the steps whose messages it waits for.
struct StepTable {
  explicit StepTable(const SteppedAlgorithm& algorithm);

  std::map<StepKey, Step> steps;
  std::map<StepKey, std::vector<StepKey>> senders;
};

/// What the messages of an algorithm cost in one dimension group.
struct StepCosts {
  Ps endpoint_delay = 0;
  bool rendezvous = false;
  std::function<Ps(Bytes bytes)> reduction;
  std::function<Ps(std::uint32_t from, std::uint32_t to, Bytes bytes, std::uint64_t step)> link;
  /// Of the clear to send of data from `sender` in this step.
  std::function<Ps(std::uint32_t sender, std::uint32_t receiver, std::uint64_t step)> clear_to_send;
  /// The longer of what `from` sends up and of what `to` gets.
  std::function<Ps(std::uint32_t from, std::uint32_t to, SwitchLoad load)> through_switch;
};

/// Evaluates the steps of an algorithm literally, each message by its definition (step.hpp). It shares nothing with the
/// evaluators of the engine but the steps. Slow.
class StepSimulation {
 public:
  StepSimulation(const SteppedAlgorithm& algorithm, StepCosts costs);

  /// Returns the finishes of the positions.
  std::vector<Ps> run(const std::vector<Ps>& starts);

 private:
  Ps begin(StepKey key);
  Ps end(StepKey key);
  Ps delivered(StepKey sender, StepKey receiver);
  Ps delivered_by_switch(StepKey receiver);

  const SteppedAlgorithm& algorithm_;
  StepCosts costs_;
  StepTable table_;
  std::map<StepKey, Ps> ends_;  ///< of the run in progress
  std::vector<Ps> starts_;
};

/// Which positions contributed to a block: bit i for position i.
using Contributions = std::uint64_t;
/// [positions][blocks]
using Data = std::vector<std::vector<Contributions>>;

/// Returns what the positions hold when data have gone over the steps of an algorithm. `added_twice` counts the
/// contributions that a position adds to a block that has them already. Throws std::logic_error if a position waits for
/// a message that nobody sends.
Data carry(const SteppedAlgorithm& algorithm, Data data, int& added_twice);

}  // namespace orrery::collective::test
