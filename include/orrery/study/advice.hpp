#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "orrery/base/time.hpp"
#include "orrery/config/configuration.hpp"
#include "orrery/config/read.hpp"
#include "orrery/results/results.hpp"

namespace orrery::study {

/// A change of the system or of the parallelism, with what the step takes then.
struct Remedy {
  std::string change;    ///< "600 GB/s in dimension 0"
  std::string remark;    ///< side effects of the change; may be empty
  double gain = 0;       ///< share of the step time, or of the time of a sample, that it saves
  Time step;             ///< step time with the change
  std::size_t part = 0;  ///< part of the breakdown that shrinks most

  /// Returns "with 600 GB/s in dimension 0: 760 ms (-9 %)".
  std::string text() const;
};

/// What can be said about a run that is worth doing.
struct Advice {
  std::vector<Remedy> remedies;    ///< those that save most first, at most three; each saves 1 % or more
  std::vector<std::string> facts;  ///< who delays whom, and a network that does not limit
};

/// Simulates changes of a run that is complete, one by one, on this rank alone. Nothing is simulated if that could take
/// more than about a second, or if the configuration is one of ASTRA-sim's files. The answer depends neither on clocks
/// nor on the number of ranks. On rank 0. Throws no Error for a change that the configuration does not allow.
Advice advise(const results::Gathered& all, const config::Inputs& inputs, const config::Configuration& configuration);

/// An input of the system and the step times with 10 % less and 10 % more of it.
struct Sensitivity {
  std::string input;  ///< "bandwidth of dimension 0"
  Time less, more;
};

/// Simulates the run with 10 % less and 10 % more of each input of the system that is a quantity: bandwidths,
/// latencies, the peak and the bandwidth of the memory. Returns the five that change the step time most, the strongest
/// first. On rank 0. Throws Error (bad_input) for ASTRA-sim's files.
std::vector<Sensitivity> find_sensitivities(const config::Inputs& inputs, const config::Configuration& configuration);

}  // namespace orrery::study
