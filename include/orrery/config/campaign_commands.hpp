#pragma once

#include <filesystem>

#include "orrery/config/read.hpp"

namespace orrery::config {

/// `orrery campaign CONFIG.yaml`: how much of weeks a job trains.
struct CampaignCommand {
  Inputs inputs;
  std::filesystem::path output;    ///< campaign.h5
  std::filesystem::path times;     ///< times that a campaign found before; empty: none
  bool optimise_interval = false;  ///< try intervals of checkpoints
  bool optimise_standby = false;   ///< try numbers of standbys
  bool keeps_times = true;         ///< write simulated times beside the output
  bool fold = false;               ///< simulate NPUs that are alike once
  bool force = false;              ///< replace existing files
};

/// `orrery cluster CONFIG.yaml`: many jobs on one cluster over time.
struct ClusterCommand {
  Inputs inputs;
  std::filesystem::path output;  ///< cluster.h5
  bool overload = false;         ///< accept a load of 1 or more
  bool force = false;            ///< replace existing files
};

}  // namespace orrery::config
