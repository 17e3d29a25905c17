#include "command.hpp"
#include "option_values.hpp"
#include "options.hpp"
#include "package.hpp"

namespace orrery::cli {
namespace {

const Subcommand& show_provenance_subcommand() {
  static const Subcommand command{"show provenance",
                                  "Print what a prediction rests on: each number with its deviation, source and kind, "
                                  "and how much the step depends on it.",
                                  "CONFIG.yaml|RESULTS.h5",
                                  "  orrery show provenance configs/llama3-8b-64.yaml\n"
                                  "  orrery show provenance results.h5",
                                  {}};
  return command;
}

PackageCommand make_show_provenance(const Arguments& arguments) {
  if (!arguments.positional())
    refuse_usage("orrery show provenance: no file. Give CONFIG.yaml or the results of a run.");
  return with_files({{"provenance"}, "calibrate"}, arguments);
}

}  // namespace

extern const CommandEntry show_provenance_entry;
const CommandEntry show_provenance_entry{show_provenance_subcommand, [](const Arguments& arguments) {
                                           return once(make_show_provenance(arguments), run_package);
                                         }};

}  // namespace orrery::cli
