#pragma once

#include <map>
#include <string_view>

#include "orrery/config/configuration.hpp"

namespace orrery::app {

/// Returns the metrics of the campaign of a configuration (explore::metrics that need one), whose step takes so many
/// seconds and has so many tokens (0: not known); nothing without a campaign. Not collective. Throws Error (bad_input)
/// for a campaign that cannot be simulated.
std::map<std::string_view, double> campaign_metrics(const config::Configuration& configuration, double step_s);

}  // namespace orrery::app
