#include "study_options.hpp"

#include <fmt/format.h>

#include "option_values.hpp"
#include "orrery/base/quantity_text.hpp"

namespace orrery::cli {

Option walltime_option() {
  return {"max-walltime", "TIME", "end in order after this time, as \"30 min\"; the same command then goes on"};
}

OptionGroup study_output(const char* file) {
  return {"Output",
          {{"output", "FILE", fmt::format("where to write what was found (default: {})", file)},
           {"csv", "FILE", "write all trials as a table too"},
           {"force", "", "replace files that exist"}}};
}

study::ExploreCommand explore_options(const Arguments& arguments, std::string_view command_name, const char* output) {
  study::ExploreCommand command;
  command.overrides = settings(arguments, command_name);
  command.output = arguments.text("output").value_or(output);
  command.csv = arguments.text("csv").value_or("");
  if (const auto walltime = arguments.text("max-walltime"))
    read_option(arguments, "max-walltime", [&] { command.max_walltime_s = parse_seconds(*walltime); });
  command.force = arguments.flag("force").value_or(false);
  return command;
}

}  // namespace orrery::cli
