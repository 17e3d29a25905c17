#include <algorithm>

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include "orrery/base/output_file.hpp"
#include "orrery/base/text.hpp"
#include "orrery/campaign/optimum.hpp"
#include "orrery/cost/cost.hpp"
#include "orrery/run/agreed.hpp"
#include "orrery/run/collect.hpp"
#include "orrery/study/campaign_tables.hpp"
#include "orrery/study/campaign_times.hpp"
#include "placed_errors.hpp"

#include "command.hpp"
#include "config_options.hpp"
#include "option_values.hpp"
#include "orrery/study/options.hpp"

namespace orrery::cli {
namespace {

/// Refuses a configuration that has no campaign.
void require_campaign(const study::CampaignCommand& command, const campaign::Options& options) {
  const std::string file = command.inputs.file.string();
  if (!options.is_given())
    throw Error(ErrorCode::bad_input, {.file = file, .key = "campaign"}, "neither duration nor work is given",
                "a section `campaign` with one of them", "See docs/campaign.md.");
  if (options.processes.empty())
    throw Error(ErrorCode::bad_input, {.file = file, .key = "campaign.failures"}, "the key is missing",
                "a list of failure processes",
                "campaign.base: llama3-2024 is one of the presets in configs/campaigns.");
}

void add_prices(study::CampaignResults& found) {
  const auto& configuration = found.file.configuration;
  if (!found.file.has_system) return;
  const auto hardware = run::hardware_of(configuration);
  if (!hardware) return;
  const auto hour = cost::cost_of_step(*hardware, 3600, 1);
  if (hour.price) found.usd_per_npu_hour = *hour.price / hardware->num_npus;
  if (hour.energy) found.joules_per_npu_hour = *hour.energy / hardware->num_npus;
}

/// Tries other settings, if that is asked for. Collective.
void optimise(const study::CampaignCommand& command, study::CampaignResults& found, parallel::Communicator& world) {
  const auto count = static_cast<std::uint32_t>(found.rows.size());
  campaign::Setup setup = found.setup;
  if (command.optimise_interval) {
    found.searches.emplace_back("interval", campaign::search_intervals(setup, found.job.times.step, count, world));
    setup = found.searches.back().second.best().setup;
  }
  if (command.optimise_standby) found.searches.emplace_back("standby", campaign::search_standbys(setup, count, world));
}

void warn_of_setup(const study::CampaignResults& found) {
  const auto& setup = found.setup;
  const bool has_groups = std::ranges::any_of(
      setup.processes, [](const campaign::Process& process) { return process.per == campaign::Per::group; });
  const bool survives = std::ranges::any_of(setup.tiers, &campaign::Tier::survives_group);
  if (has_groups && !setup.tiers.empty() && !survives)
    spdlog::warn("no checkpoint survives a failure of a group: such a failure goes back to the beginning");
  if (setup.tiers.empty())
    spdlog::warn("campaign.checkpoint is not given: the job takes no checkpoints, and failures lose no work");
  const auto depleted = std::ranges::count_if(found.rows, &campaign::Row::depleted);
  if (depleted > 0)
    spdlog::warn("{} of {} were depleted: neither repairs nor spares were left; means are of the others", depleted,
                 counted(found.rows.size(), "replication"));
}

void campaign(const study::CampaignCommand& command, const CommandJob& job) {
  const std::string& command_line = job.command_line;
  parallel::Communicator& world = job.world;
  const auto file = run::agreed(world, [&] {
    if (world.is_root()) check_output(command.output, command.force);
    auto read = config::read_campaign(command.inputs);
    require_campaign(command, read.configuration.campaign);
    return read;
  });
  if (world.is_root())
    for (const std::string& warning : file.configuration.warnings) spdlog::warn("{}", warning);
  const auto& options = file.configuration.campaign;
  const study::JobTimes job_times = study::times_of(file, command, world);
  const auto setup = run::agreed(world, [&] {
    return with_place(command.inputs.file, file.configuration,
                      [&] { return campaign::setup_of(options, job_times.times, job_times.num_npus); });
  });
  study::CampaignResults found{file, job_times, setup};
  found.rows = options.sampling.accuracy > 0 ? campaign::simulate_until(setup, options.sampling.accuracy, world)
                                             : campaign::simulate(setup, options.sampling.replications, world);
  found.estimates = campaign::estimates(found.rows, setup);
  optimise(command, found, world);
  world.agree([&] {
    if (!world.is_root()) return;
    campaign::replicate(setup, 0, [&](const campaign::Period& period) { found.timeline.push_back(period); });
    add_prices(found);
    warn_of_setup(found);
    study::print_campaign(found);
  });
  const auto content = world.is_root() ? study::campaign_file_of(found, command_line) : results::TableFile{};
  const auto written = results::write_tables(command.output, content, command.force, world);
  if (world.is_root()) fmt::print("results are in {}\n", written.string());
}

const Subcommand& campaign_subcommand() {
  static const Subcommand command{
      "campaign",
      "Simulate how much of weeks or months a job trains, with failures, checkpoints and spare hosts.",
      "CONFIG.yaml",
      "  orrery campaign examples/campaign/llama3-16384.yaml --output goodput.h5\n"
      "  mpirun -np 2 orrery campaign CONFIG.yaml --optimise interval,standby --output best.h5",
      {{"Output",
        {{"output", "FILE", "where to write what was found (default: campaign.h5)"},
         {"force", "", "replace files that exist"}}},
       {"Campaign",
        {{"times", "FILE", "take the times of the job from a file that a campaign has written, and simulate no step"},
         {"optimise", "WHAT", "find the best interval of checkpoints, number of standbys, or both: interval,standby"},
         {"fold", "", "simulate NPUs that are alike once where steps are simulated (docs/folding.md)"}}},
       own_inputs()}};
  return command;
}

study::CampaignCommand make_campaign(const Arguments& arguments) {
  auto command = options_of_section<study::CampaignCommand>(arguments, "campaign");
  command.times = arguments.text("times").value_or("");
  command.fold = arguments.flag("fold").value_or(false);
  const std::string given = arguments.text("optimise").value_or("");
  for (std::string_view rest = given; !rest.empty();) {
    const auto comma = rest.find(',');
    const std::string_view word = rest.substr(0, comma);
    if (word == "interval")
      command.optimise_interval = true;
    else if (word == "standby")
      command.optimise_standby = true;
    else
      arguments.refuse("optimise", "interval, standby or interval,standby");
    rest = comma == std::string_view::npos ? "" : rest.substr(comma + 1);
  }
  return command;
}

}  // namespace

extern const CommandEntry campaign_entry;
const CommandEntry campaign_entry{
    campaign_subcommand, [](const Arguments& arguments) { return as_job(make_campaign(arguments), campaign); }};

}  // namespace orrery::cli
