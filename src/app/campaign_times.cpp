#include "campaign_times.hpp"

#include <fmt/format.h>

#include "orrery/run/agreed.hpp"
#include "orrery/workload/figures.hpp"
#include "orrery/workload/outline.hpp"

namespace orrery::app {
namespace {

using campaign::Times;

/// Throws the error about a time that nobody knows.
[[noreturn]] void refuse_missing(const std::string& key, bool has_workload) {
  throw Error(ErrorCode::bad_input, {.key = key}, "the key is missing", "a time",
              has_workload ? "" : "Give it, or a system and a workload from whose simulation it follows.");
}

}  // namespace

JobTimes times_of(const config::CampaignFile& file, const config::CampaignCommand&, parallel::Communicator& world) {
  return run::agreed(world, [&] {
    const auto& options = file.configuration.campaign;
    JobTimes job;
    Times& times = job.times;
    if (!options.step.time) refuse_missing("campaign.step.time", file.has_workload);
    times.step = *options.step.time;
    times.tokens = options.step.tokens;
    if (file.has_workload) job.num_npus = topology::Topology(file.configuration.dimensions).num_npus();
    const auto& generated = file.configuration.workload.generated;
    if (generated) {
      job.parameters = static_cast<double>(workload::figures_of_model(*generated).parameters);
      if (times.tokens == 0) times.tokens = static_cast<double>(workload::size_of_step(*generated).tokens);
    }
    for (std::size_t i = 0; i < options.tiers.size(); ++i) {
      const auto& tier = options.tiers[i];
      if (!tier.stall) refuse_missing(fmt::format("campaign.checkpoint.{}.stall", i), file.has_workload);
      times.tiers.push_back({*tier.stall, tier.durable.value_or(0), tier.read.value_or(0)});
    }
    for (const auto& process : options.processes) times.speeds.push_back(process.process.speed);
    return job;
  });
}

}  // namespace orrery::app
