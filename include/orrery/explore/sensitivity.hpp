#pragma once

#include <span>
#include <string>

namespace orrery::explore {

/// Returns the main effect of a parameter on a metric: the variance of the means of the metric at each value of the
/// parameter, over the variance of the metric (Saltelli et al., "Global Sensitivity Analysis", 2008, section 1.2.3: the
/// first-order index). Each value counts as often as it occurs. `values`, `metric`: [trials]; trials whose metric is
/// NaN are left out. NaN for fewer than two trials, or if the metric does not vary. More than ten distinct numbers are
/// first divided into ten classes of about as many trials each. O(trials * log(trials)).
double main_effect(std::span<const std::string> values, std::span<const double> metric);

}  // namespace orrery::explore
