#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "option_table.hpp"
#include "orrery/base/error.hpp"
#include "orrery/base/suggestion.hpp"
#include "orrery/show/options.hpp"

namespace orrery::cli {

/// Throws Error (usage).
[[noreturn]] void refuse_usage(const std::string& text);

/// Runs `read`, and makes a usage error about the option of a fault of its value.
template <class Read>
void read_option(const Arguments& arguments, std::string_view name, Read read) {
  try {
    read();
  } catch (const Error& error) {
    const std::string& text = error.text();
    arguments.refuse_as(name, text);
  }
}

/// Returns the values of --set. Throws Error (usage) for one without a key.
std::vector<std::string> settings(const Arguments& arguments, std::string_view command);

/// Returns how a table is printed, by --json and --csv. Throws Error (usage) if both are given.
show::TableForm table_form(const Arguments& arguments, std::string_view command);

/// Returns the value of an option. Throws Error (usage) with the example if it was not given.
std::string needed(const Arguments& arguments, std::string_view command, std::string_view name,
                   std::string_view example);

/// Returns a command whose configuration and results have the name of its section. Throws Error (usage).
template <class Options>
Options options_of_section(const Arguments& arguments, const std::string& section) {
  Options options;
  if (!arguments.positional())
    refuse_usage(fmt::format("orrery {}: no configuration. Give a CONFIG.yaml with a section `{}`.", section, section));
  options.inputs.file = *arguments.positional();
  options.inputs.overrides = settings(arguments, section);
  options.output = arguments.text("output").value_or(section + ".h5");
  options.force = arguments.flag("force").value_or(false);
  return options;
}

}  // namespace orrery::cli
