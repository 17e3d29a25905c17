#include "command.hpp"
#include "option_values.hpp"
#include "orrery/show/commands.hpp"

namespace orrery::cli {
namespace {

const Subcommand& show_timeline_subcommand() {
  static const Subcommand command{
      "show timeline",
      "Write what NPUs did when, for Perfetto and about:tracing.",
      "RESULTS.h5",
      "  orrery run configs/llm-64.yaml --timeline --output results.h5\n"
      "  orrery show timeline results.h5 --chrome timeline.json.gz --npus 0-7,32",
      {{"Output",
        {{"chrome", "FILE", "Chrome's Trace Event Format (JSON), compressed if the name ends in .gz; needed"},
         {"npus", "LIST", "NPUs, as 0-63 or 0,3,8-15 (default: all)"},
         {"force", "", "replace an existing file"}}}}};
  return command;
}

show::ShowTimelineCommand make_show_timeline(const Arguments& arguments) {
  show::ShowTimelineCommand command;
  if (!arguments.positional())
    refuse_usage("orrery show timeline: no file. Give the results of a run with --timeline.");
  command.file = *arguments.positional();
  command.chrome = needed(arguments, "show timeline", "chrome", "timeline.json.gz");
  command.npus = arguments.text("npus");
  command.force = arguments.flag("force").value_or(false);
  return command;
}

}  // namespace

extern const CommandEntry show_timeline_entry;
const CommandEntry show_timeline_entry{show_timeline_subcommand, [](const Arguments& arguments) {
                                         return once(make_show_timeline(arguments), show::show_timeline);
                                       }};

}  // namespace orrery::cli
