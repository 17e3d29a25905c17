#pragma once

#include <cstdint>

#include "orrery/campaign/options.hpp"
#include "orrery/config/campaign_file.hpp"
#include "orrery/parallel/communicator.hpp"
#include "orrery/study/options.hpp"

namespace orrery::study {

/// What a campaign has of its job, and what checkpoints hold.
struct JobTimes {
  campaign::Times times;
  std::uint32_t num_npus = 0;  ///< 0: not known
  double parameters = 0;       ///< parameters of the model; 0: not known
};

/// Returns the times of the job: those that the configuration gives, those of --times, and for what is left those of
/// simulations. Collective. Throws Error (bad_input) for a time that is neither given nor can be simulated.
JobTimes times_of(const config::CampaignFile& file, const CampaignCommand& command, parallel::Communicator& world);

}  // namespace orrery::study
