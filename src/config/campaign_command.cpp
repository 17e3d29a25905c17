#include "campaign_command.hpp"

#include <fmt/format.h>

#include <string>
#include <string_view>

#include "option_values.hpp"
#include "subcommands.hpp"

namespace orrery::config {

namespace {

/// Returns a command whose configuration and results have the name of its section.
template <class Command>
Command command_of_section(const Arguments& arguments, const std::string& section) {
  Command command;
  if (!arguments.positional())
    refuse_usage(fmt::format("orrery {}: no configuration. Give a CONFIG.yaml with a section `{}`.", section, section));
  command.inputs.file = *arguments.positional();
  command.inputs.overrides = settings(arguments, section);
  command.output = arguments.text("output").value_or(section + ".h5");
  command.force = arguments.flag("force").value_or(false);
  return command;
}

}  // namespace

CampaignCommand make_campaign(const Arguments& arguments) {
  auto command = command_of_section<CampaignCommand>(arguments, "campaign");
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

ClusterCommand make_cluster(const Arguments& arguments) {
  auto command = command_of_section<ClusterCommand>(arguments, "cluster");
  command.overload = arguments.flag("overload").value_or(false);
  return command;
}

const Subcommand& cluster_subcommand() {
  static const Subcommand command{
      "cluster",
      "Simulate many jobs on one cluster over time: queues, schedulers, placement.",
      "CONFIG.yaml",
      "  orrery cluster examples/cluster/mix.yaml --output mix.h5\n"
      "  mpirun -np 2 orrery cluster CONFIG.yaml --set cluster.admission=easy --output easy.h5",
      {{"Output",
        {{"output", "FILE", "where to write what was found (default: cluster.h5)"},
         {"force", "", "replace files that exist"}}},
       {"Cluster", {{"overload", "", "simulate a load of 1 or more, under which the queue grows for ever"}}},
       own_inputs()}};
  return command;
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

}  // namespace orrery::config
