#include "command.hpp"
#include "config_options.hpp"
#include "option_values.hpp"
#include "orrery/show/commands.hpp"

namespace orrery::cli {
namespace {

const Subcommand& show_kernel_subcommand() {
  static const Subcommand command{"show kernel",
                                  "Print how a run went on each rank, and what limits it.",
                                  "RESULTS.h5",
                                  "  orrery show kernel results.h5",
                                  {{"Output", {json_option()}}}};
  return command;
}

show::ShowKernelCommand make_show_kernel(const Arguments& arguments) {
  show::ShowKernelCommand command;
  if (!arguments.positional()) refuse_usage("orrery show kernel: no file. Give the results of a run.");
  command.file = *arguments.positional();
  command.json = arguments.flag("json").value_or(false);
  return command;
}

}  // namespace

extern const CommandEntry show_kernel_entry;
const CommandEntry show_kernel_entry{show_kernel_subcommand, [](const Arguments& arguments) {
                                       return once(make_show_kernel(arguments), show::show_kernel);
                                     }};

}  // namespace orrery::cli
