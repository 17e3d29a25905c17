#pragma once

#include <optional>
#include <string>

#include "orrery/cluster/cluster.hpp"
#include "orrery/config/campaign_file.hpp"
#include "orrery/results/table_file.hpp"

namespace orrery::study {

/// What a cluster over time found.
struct ClusterResults {
  const config::CampaignFile& file;
  const cluster::Options& options;
  const cluster::Found& found;
  std::optional<double> usd_per_npu_hour;  ///< none: the system has no price
};

/// Returns the file of a cluster over time (docs/cluster-time.md).
results::TableFile cluster_file_of(const ClusterResults& results, const std::string& command_line);

/// Prints what became of the jobs of each class, and how much of the cluster was used.
void print_cluster(const ClusterResults& results);

}  // namespace orrery::study
