#include <vector>

#include "command.hpp"
#include "config_options.hpp"
#include "orrery/show/commands.hpp"

namespace orrery::cli {
namespace {

const Subcommand& show_network_subcommand() {
  static const Subcommand command{
      "show network", "Print what a network allows before a run: links, bisection, oversubscription, paths, hops.",
      "CONFIG.yaml",
      "  orrery show network configs/graph-16.yaml\n"
      "  orrery show network configs/graphs/leaf-spine-16.yaml\n"
      "  orrery show network configs/llm-64.yaml --pairs 200 --seed 7 --json",
      key_groups(config::Taker::show_topology) +
          std::vector<OptionGroup>{
              {"Paths",
               {{"pairs", "N", "count the paths of N pairs of NPUs at the most (default: 1000)"},
                {"seed", "N", "seed of the choice of pairs, and of NPUs, where not all are taken (default: 1)"}}},
              {"Output", {json_option()}},
              own_inputs(),
              astra_sim_inputs(config::Taker::show_topology)}};
  return command;
}

show::ShowNetworkCommand make_show_network(const Arguments& arguments) {
  show::ShowNetworkCommand command;
  command.inputs = read_inputs(arguments, "show network", true);
  read_flags_of(arguments, config::Taker::show_topology, "show network", command.inputs);
  command.seed = arguments.count("seed", 0).value_or(command.seed);
  command.pairs = arguments.count("pairs").value_or(command.pairs);
  command.json = arguments.flag("json").value_or(false);
  return command;
}

}  // namespace

extern const CommandEntry show_network_entry;
const CommandEntry show_network_entry{show_network_subcommand, [](const Arguments& arguments) {
                                        return once(make_show_network(arguments), show::show_network);
                                      }};

}  // namespace orrery::cli
