#pragma once

#include "option_table.hpp"
#include "orrery/config/command_line.hpp"

namespace orrery::config {

/// Reads what `orrery campaign` is given. Throws Error (usage).
CampaignCommand make_campaign(const Arguments& arguments);
/// Reads what `orrery cluster` is given. Throws Error (usage).
ClusterCommand make_cluster(const Arguments& arguments);

}  // namespace orrery::config
