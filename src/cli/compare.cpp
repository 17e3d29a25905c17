#include "command.hpp"
#include "option_values.hpp"
#include "options.hpp"
#include "package.hpp"

namespace orrery::cli {
namespace {

const Subcommand& compare_subcommand() {
  static const Subcommand command{"compare",
                                  "Print in what runs or studies differ and what that did to the step.",
                                  "RESULTS.h5 ...",
                                  "  orrery compare base.h5 faster.h5\n"
                                  "  orrery compare sweep/*.h5 --format csv\n"
                                  "  orrery compare explore.h5 explore-other.h5",
                                  {{"Output", {format_option()}}}};
  return command;
}

PackageCommand make_compare(const Arguments& arguments) {
  if (arguments.positionals().size() < 2)
    refuse_usage("orrery compare: fewer than two files. Give the results of the runs that are to be compared.");
  return with_files({{"compare", format_argument(arguments)}}, arguments);
}

}  // namespace

extern const CommandEntry compare_entry;
const CommandEntry compare_entry{compare_subcommand,
                                 [](const Arguments& arguments) { return once(make_compare(arguments), run_package); }};

}  // namespace orrery::cli
