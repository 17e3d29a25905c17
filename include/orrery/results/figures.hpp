#pragma once

#include <string_view>
#include <vector>

#include "orrery/results/metrics.hpp"

namespace orrery::results {

/// Returns the names of the numbers in /metrics of results.
std::vector<std::string_view> figure_names();

/// Returns these numbers, [figure_names()]: times in seconds, NaN for what is not known.
std::vector<double> figures_of(const Metrics& metrics);

/// Returns the units of a figure; empty for another name.
std::string_view units_of_figure(std::string_view name);

}  // namespace orrery::results
