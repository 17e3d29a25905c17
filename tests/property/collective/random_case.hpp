#pragma once

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <random>
#include <vector>

#include "all_rules.hpp"
#include "message_simulation.hpp"
#include "orrery/collective/collective.hpp"

namespace orrery::collective::test {

using test_support::AllRules;

/// Draws a number in low .. high.
std::uint64_t pick(std::mt19937_64& random, std::uint64_t low, std::uint64_t high);

/// Draws one of the values.
template <class T>
T one_of(std::mt19937_64& random, std::initializer_list<T> values) {
  return values.begin()[pick(random, 0, values.size() - 1)];
}

/// One random system and one collective on its world.
struct RandomCase {
  AllRules rules;
  std::vector<topology::Dimension> dimensions;
  Options options;
  std::vector<topology::LinkFault> faults;
  Kind kind = Kind::all_reduce;
  Bytes size;

  network::DelayModel delays() const;
  /// With the rules.
  Options engine_options() const { return rules.with(options); }
  /// Messages that an NPU sends over its link of dimension d at a time, if they share it.
  std::uint64_t at_once(std::uint32_t d) const;
  /// Returns whether messages that different positions send in a step may meet on a link.
  bool may_share_links() const;
  std::uint32_t num_npus() const;
};

/// 2 to `most` NPUs, any rules, algorithms that have a rule for the kind.
RandomCase random_case(std::mt19937_64& random, std::uint32_t most);

/// Slow ports in any dimension, and failed links where something leads around them.
void add_random_faults(std::mt19937_64& random, RandomCase& sample);

std::vector<Time> random_arrivals(std::mt19937_64& random, std::uint32_t count);

/// Returns how many messages of a step share the busiest link that the data of a message pass in its dimension, by
/// phase and exchange of a scenario; 1 where the rules do not let them share it. The delay model must outlive it.
std::function<std::uint64_t(const Passage&)> loads_of(const RandomCase& sample, const Scenario& scenario,
                                                      const network::DelayModel& delays);

/// The same collective for the message simulation, built from docs/model.md and not from the engine. One queue only.
Scenario scenario_of(const RandomCase& sample, const network::DelayModel& delays);

}  // namespace orrery::collective::test
