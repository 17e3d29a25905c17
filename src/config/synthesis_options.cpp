#include "synthesis_options.hpp"

#include <fmt/format.h>

#include <string>
#include <string_view>
#include <utility>

#include "option_values.hpp"
#include "orrery/config/units.hpp"

namespace orrery::config {
namespace {

/// Reads "a1=4".
std::pair<std::uint32_t, double> read_axis_factor(const std::string& text) {
  const auto at = text.find('=');
  if (at == std::string::npos || at < 2 || text.front() != 'a')
    throw Error(ErrorCode::bad_input, {}, fmt::format("found '{}'", text), "an axis and its factor, such as a1=4");
  const auto axis = static_cast<std::uint32_t>(parse_count(std::string_view(text).substr(1, at - 1), 0, 63));
  return {axis, parse_number(std::string_view(text).substr(at + 1))};
}

}  // namespace

void read_synthesis(const Arguments& arguments, SynthesizeCommand& command) {
  if (const auto model = arguments.text("model")) command.model = *model;
  if (command.model.has_value() != command.traces.inputs.empty())
    throw Error(ErrorCode::usage, "orrery synthesize: give either traces or --model FILE.");
  if (const auto output = arguments.text("model-out")) command.model_output = *output;
  command.traces.output = arguments.text("output").value_or("");
  if (command.traces.output.empty() && !command.model_output)
    throw Error(ErrorCode::usage,
                "orrery synthesize: --output missing. Give a prefix such as --output traces/workload, or --model-out "
                "FILE.");
  for (const std::string& text : arguments.texts("scale"))
    read_option(arguments, "scale", [&] { command.scale.push_back(read_axis_factor(text)); });
  command.ranks = arguments.count("ranks");
  command.layers = arguments.count("layers");
  command.micro_batches = arguments.count("micro-batches");
  for (const auto& [name, value] :
       {std::pair("sizes", &command.sizes), std::pair("delta", &command.delta), std::pair("spread", &command.spread)})
    if (const auto text = arguments.text(name)) read_option(arguments, name, [&] { *value = parse_number(*text); });
  if (command.sizes <= 0) arguments.refuse("sizes", "a factor above 0");
  if (command.delta > 2) arguments.refuse("delta", "a number from 0 to 2");
  if (command.spread > 2) arguments.refuse("spread", "a number from 0 to 2");
  command.seed = arguments.count("seed", 0).value_or(command.seed);
  command.min_support = arguments.count("min-support").value_or(command.min_support);
  command.quiet = arguments.flag("quiet").value_or(false);
  command.reference = arguments.text("reference");
  if (const auto groups = arguments.text("reference-groups")) command.reference_groups = *groups;
}

}  // namespace orrery::config
