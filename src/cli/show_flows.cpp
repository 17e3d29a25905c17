#include "command.hpp"
#include "config_options.hpp"
#include "option_values.hpp"
#include "orrery/show/commands.hpp"

namespace orrery::cli {
namespace {

const Subcommand& show_flows_subcommand() {
  static const Subcommand command{
      "show flows",
      "Print how long messages of the packet network took, by size and by group, and which were the slowest.",
      "RESULTS.h5",
      "  orrery run configs/graph-16.yaml --record-flows --output results.h5\n"
      "  orrery show flows results.h5 --slowest 20",
      {{"Output", table_options()},
       {"Flows", {{"slowest", "N", "list the N messages with the largest slowdown (default: 10)"}}}}};
  return command;
}

show::ShowFlowsCommand make_show_flows(const Arguments& arguments) {
  show::ShowFlowsCommand command;
  if (!arguments.positional())
    refuse_usage("orrery show flows: no file. Give the results of a run on the packet network with --record-flows.");
  command.file = *arguments.positional();
  command.slowest = arguments.count("slowest", 0).value_or(command.slowest);
  command.form = table_form(arguments, "show flows");
  return command;
}

}  // namespace

extern const CommandEntry show_flows_entry;
const CommandEntry show_flows_entry{show_flows_subcommand, [](const Arguments& arguments) {
                                      return once(make_show_flows(arguments), show::show_flows);
                                    }};

}  // namespace orrery::cli
