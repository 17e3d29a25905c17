#pragma once

#include <map>
#include <string_view>

#include "orrery/config/configuration.hpp"

namespace orrery::study {

/// Returns the metrics of the campaign of a configuration (explore::metrics that need one), whose step takes so many
/// seconds and has so many tokens (0: not known); nothing without a campaign. Not collective. Throws Error (bad_input)
/// for a campaign that cannot be simulated.
std::map<std::string_view, double> campaign_metrics(const config::Configuration& configuration, double step_s);

/// Returns whether a configuration has a cluster over time in place of a workload.
bool has_cluster_alone(const config::Configuration& configuration);
/// Returns the metrics of a cluster over time, by name. Throws Error (bad_input).
std::map<std::string_view, double> cluster_metrics(const config::Configuration& configuration);

}  // namespace orrery::study
