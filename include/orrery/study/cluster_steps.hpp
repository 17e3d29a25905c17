#pragma once

#include <memory>

#include "orrery/cluster/step_level.hpp"
#include "orrery/config/campaign_file.hpp"
#include "orrery/config/read.hpp"
#include "orrery/parallel/communicator.hpp"

namespace orrery::study {

/// Returns what simulates steps of the classes of `options` on the system of a CONFIG.yaml. Classes whose workload has
/// more than one NPU, and that have no other number of NPUs, take that number. The arguments must outlive it.
/// Throws Error (bad_input) for workloads that cannot be simulated there.
std::unique_ptr<cluster::StepLevel> make_step_level(const config::Inputs& inputs, const config::CampaignFile& file,
                                                    cluster::Options& options, parallel::Communicator& world);

}  // namespace orrery::study
