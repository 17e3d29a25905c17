#include <utility>

#include <fmt/format.h>

#include "command.hpp"
#include "option_values.hpp"
#include "options.hpp"
#include "package.hpp"

namespace orrery::cli {
namespace {

const Subcommand& report_subcommand() {
  static const Subcommand command{"report",
                                  "Write the results of runs or of studies as one page for a browser, which needs no "
                                  "network.",
                                  "RESULTS.h5 ...",
                                  "  orrery run configs/llama3-8b-64.yaml --timeline --output results.h5\n"
                                  "  orrery report results.h5 --output report.html\n"
                                  "  orrery report explore.h5 --output study.html",
                                  {{"Output",
                                    {{"output", "FILE", "the page (default: report.html in the current folder)"},
                                     {"force", "", "replace an existing file"}}}}};
  return command;
}

PackageCommand make_report(const Arguments& arguments) {
  if (arguments.positionals().empty()) refuse_usage("orrery report: no file. Give the results of one or more runs.");
  PackageCommand command{{"report", fmt::format("--output={}", arguments.text("output").value_or("report.html"))}};
  if (arguments.flag("force").value_or(false)) command.arguments.emplace_back("--force");
  return with_files(std::move(command), arguments);
}

}  // namespace

extern const CommandEntry report_entry;
const CommandEntry report_entry{report_subcommand,
                                [](const Arguments& arguments) { return once(make_report(arguments), run_package); }};

}  // namespace orrery::cli
