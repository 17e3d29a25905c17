#pragma once

#include <string>
#include <vector>

#include "orrery/config/configuration.hpp"
#include "orrery/results/results.hpp"
#include "orrery/study/advice.hpp"

namespace orrery::show {

/// Where a summary is printed.
struct Terminal {
  std::size_t columns = 80;
  bool has_colours = false;
};

/// Returns the terminal on standard output: 80 columns where there is none, and colours as `wanted` says, or, if that
/// is left open, on a terminal unless NO_COLOR is set.
Terminal terminal_of(config::Colours wanted);

/// Returns the answer of a run in at most 20 lines that fit the terminal: what was simulated with its step time, MFU,
/// tokens per second and memory; where the time goes, with remedies; hints and warnings; files and the next command.
std::vector<std::string> brief_summary(const results::Gathered& all, const results::RunDescription& run,
                                       const config::Configuration& configuration, const study::Advice& advice,
                                       const Terminal& terminal);

/// Returns the lines of a table of what the step depends on.
std::vector<std::string> sensitivity_lines(const std::vector<study::Sensitivity>& found, Time step);

}  // namespace orrery::show
