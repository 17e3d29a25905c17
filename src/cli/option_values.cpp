#include "option_values.hpp"

#include <fmt/format.h>

namespace orrery::cli {

void refuse_usage(const std::string& text) { throw Error(ErrorCode::usage, text); }

std::vector<std::string> settings(const Arguments& arguments, std::string_view command) {
  auto overrides = arguments.texts("set");
  for (const auto& setting : overrides)
    if (setting.find('=') == std::string::npos || setting.starts_with('='))
      refuse_usage(
          fmt::format("orrery {}: --set {}: expected KEY.PATH=VALUE, such as --set system.collectives.chunks=8.",
                      command, setting));
  return overrides;
}

show::TableForm table_form(const Arguments& arguments, std::string_view command) {
  const bool json = arguments.flag("json").value_or(false), csv = arguments.flag("csv").value_or(false);
  if (json && csv) refuse_usage(fmt::format("orrery {}: --csv and --json are both given. Give one of them.", command));
  return json ? show::TableForm::json : csv ? show::TableForm::csv : show::TableForm::text;
}

std::string needed(const Arguments& arguments, std::string_view command, std::string_view name,
                   std::string_view example) {
  const auto text = arguments.text(name);
  if (!text || text->empty())
    refuse_usage(fmt::format("orrery {}: --{} is missing, such as --{} {}.", command, name, name, example));
  return *text;
}

}  // namespace orrery::cli
