#include <vector>

#include "command.hpp"
#include "config_options.hpp"
#include "orrery/show/commands.hpp"

namespace orrery::cli {
namespace {

const Subcommand& show_topology_subcommand() {
  static const Subcommand command{
      "show topology", "Print the dimensions, links and delays of a system.", "CONFIG.yaml",
      "  orrery show topology configs/llm-64.yaml --json",
      key_groups(config::Taker::show_topology) +
          std::vector<OptionGroup>{
              {"Output", {json_option()}}, own_inputs(), astra_sim_inputs(config::Taker::show_topology)}};
  return command;
}

show::ShowTopologyCommand make_show_topology(const Arguments& arguments) {
  show::ShowTopologyCommand command;
  command.inputs = read_inputs(arguments, "show topology", true);
  read_flags_of(arguments, config::Taker::show_topology, "show topology", command.inputs);
  command.json = arguments.flag("json").value_or(false);
  return command;
}

}  // namespace

extern const CommandEntry show_topology_entry;
const CommandEntry show_topology_entry{show_topology_subcommand, [](const Arguments& arguments) {
                                         return once(make_show_topology(arguments), show::show_topology);
                                       }};

}  // namespace orrery::cli
