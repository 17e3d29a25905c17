#include "command.hpp"
#include "config_options.hpp"
#include "option_values.hpp"
#include "orrery/show/commands.hpp"

namespace orrery::cli {
namespace {

const Subcommand& show_collisions_subcommand() {
  static const Subcommand command{
      "show collisions",
      "Print on which links messages of the packet network met, and which messages these were.",
      "RESULTS.h5",
      "  orrery run configs/graph-16.yaml --record-flows --output results.h5\n"
      "  orrery show collisions results.h5 --links 20",
      {{"Output", table_options()}, {"Links", {{"links", "N", "list N links (default: 10)"}}}}};
  return command;
}

show::ShowCollisionsCommand make_show_collisions(const Arguments& arguments) {
  show::ShowCollisionsCommand command;
  if (!arguments.positional())
    refuse_usage(
        "orrery show collisions: no file. Give the results of a run on the packet network with --record-flows.");
  command.file = *arguments.positional();
  command.most_links = arguments.count("links").value_or(command.most_links);
  command.form = table_form(arguments, "show collisions");
  return command;
}

}  // namespace

extern const CommandEntry show_collisions_entry;
const CommandEntry show_collisions_entry{show_collisions_subcommand, [](const Arguments& arguments) {
                                           return once(make_show_collisions(arguments), show::show_collisions);
                                         }};

}  // namespace orrery::cli
