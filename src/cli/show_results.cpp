#include "command.hpp"
#include "option_values.hpp"
#include "options.hpp"
#include "package.hpp"

namespace orrery::cli {
namespace {

const Subcommand& show_results_subcommand() {
  static const Subcommand command{"show results",
                                  "Print where the time of a step goes and how busy network and memory are, or what a "
                                  "study found.",
                                  "RESULTS.h5",
                                  "  orrery show results results.h5\n"
                                  "  orrery show results explore.h5 --format csv",
                                  {{"Output", {format_option()}}}};
  return command;
}

PackageCommand make_show_results(const Arguments& arguments) {
  if (!arguments.positional()) refuse_usage("orrery show results: no file. Give the results of a run.");
  return with_files({{"show", format_argument(arguments)}}, arguments);
}

}  // namespace

extern const CommandEntry show_results_entry;
const CommandEntry show_results_entry{show_results_subcommand, [](const Arguments& arguments) {
                                        return once(make_show_results(arguments), run_package);
                                      }};

}  // namespace orrery::cli
