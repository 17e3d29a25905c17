#include <array>

#include "orrery/check/checks.hpp"

namespace orrery::check {

// Each is defined in the file of its name.
Check tags();
Check dimensions();
Check ignored_dimensions();
Check roofline();
Check durations();
Check remote_memory();
Check local_memory();
Check custom_nodes();
Check unused_keys();
Check algorithms();
Check messages();
Check collectives();
Check plans();
Check ranges();

std::span<const Check> checks_of_nodes() {
  static const std::array all = {tags(),          dimensions(),   ignored_dimensions(), roofline(),    durations(),
                                 remote_memory(), local_memory(), custom_nodes(),       unused_keys(), algorithms()};
  return all;
}

std::span<const Check> checks_of_agreement() {
  static const std::array all = {messages(), collectives(), plans()};
  return all;
}

std::span<const Check> checks_of_simulated_npus() {
  static const std::array all = {ranges()};
  return all;
}

}  // namespace orrery::check
