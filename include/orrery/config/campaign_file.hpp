#pragma once

#include "orrery/config/configuration.hpp"
#include "orrery/config/read.hpp"

namespace orrery::config {

/// A CONFIG.yaml with a campaign or a cluster over time. It needs a system only where something is simulated.
struct CampaignFile {
  Configuration configuration;
  bool has_system = false;
  bool has_workload = false;
};

/// Reads a CONFIG.yaml for `orrery campaign`. Throws as `read`.
CampaignFile read_campaign(const Inputs& inputs);
/// Returns whether a CONFIG.yaml has a cluster over time in place of a workload. Throws as `read`.
bool is_of_cluster(const Inputs& inputs);

}  // namespace orrery::config
