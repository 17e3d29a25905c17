#include "command.hpp"
#include "option_values.hpp"
#include "orrery/show/commands.hpp"

namespace orrery::cli {
namespace {

const Subcommand& show_queues_subcommand() {
  static const Subcommand command{
      "show queues",
      "Print how deep the queues of the packet network were, and which links were stopped, and by whom.",
      "RESULTS.h5",
      "  orrery run configs/graph-16.yaml --queue-bins 500 --output results.h5\n"
      "  orrery show queues results.h5 --csv",
      {{"Output",
        {{"json", "", "print JSON, with each interval of each queue"},
         {"csv", "", "print each interval of each queue as CSV"}}},
       {"Links", {{"links", "N", "list N links (default: 10)"}}}}};
  return command;
}

show::ShowQueuesCommand make_show_queues(const Arguments& arguments) {
  show::ShowQueuesCommand command;
  if (!arguments.positional())
    refuse_usage("orrery show queues: no file. Give the results of a run on the packet network with --queue-bins.");
  command.file = *arguments.positional();
  command.most_links = arguments.count("links").value_or(command.most_links);
  command.form = table_form(arguments, "show queues");
  return command;
}

}  // namespace

extern const CommandEntry show_queues_entry;
const CommandEntry show_queues_entry{show_queues_subcommand, [](const Arguments& arguments) {
                                       return once(make_show_queues(arguments), show::show_queues);
                                     }};

}  // namespace orrery::cli
