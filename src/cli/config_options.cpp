#include "config_options.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>
#include <string_view>
#include <utility>

#include "option_values.hpp"

namespace orrery::cli {
namespace {

using config::AstraSimFlag;
using config::KeyFlag;

Option option_of(const KeyFlag& flag) {
  return {.name = flag.name, .argument = flag.argument, .help = flag.help, .words = flag.words};
}

/// Returns `text`, with the unit that a number without one has as the value of a flag.
std::string with_unit(std::string text, std::string_view bare_unit) {
  if (!bare_unit.empty() && !text.empty() && text.find_first_not_of("0123456789.") == std::string::npos)
    text += fmt::format(" {}", bare_unit);
  return text;
}

bool any_astra_sim(const Arguments& arguments) {
  return std::ranges::any_of(config::flags_of_astra_sim(),
                             [&](const AstraSimFlag& each) { return arguments.has(each.flag.key); });
}

config::AstraSimInputs read_astra_sim_flags(const Arguments& arguments, std::string_view command, bool system_only) {
  config::AstraSimInputs files;
  std::vector<std::string> missing;
  for (const AstraSimFlag& each : config::flags_of_astra_sim(system_only)) {
    const std::string& name = each.flag.key;
    const auto text = arguments.text(name);
    if (text && !text->empty())
      read_option(arguments, name, [&] { each.read(*text, files); });
    else if (each.is_missing(files))
      missing.push_back(fmt::format("--{}", name));
  }
  if (!missing.empty())
    refuse_usage(
        fmt::format("orrery {}: {} missing. ASTRA-sim's files are given all together, or CONFIG.yaml instead of them.",
                    command, fmt::join(missing, ", ")));
  return files;
}

}  // namespace

OptionGroup own_inputs() {
  return {"Orrery's own configuration",
          {{"set", "KEY=VALUE", "replace a value of CONFIG.yaml, as system.collectives.chunks=8; repeatable", true}}};
}

std::vector<OptionGroup> key_groups(config::Taker command) {
  std::vector<OptionGroup> groups;
  for (const KeyFlag& flag : config::key_flags(command)) {
    if (groups.empty() || groups.back().title != flag.heading) groups.push_back({std::string(flag.heading), {}});
    groups.back().options.push_back(option_of(flag));
  }
  return groups;
}

OptionGroup astra_sim_inputs(config::Taker command) {
  OptionGroup group;
  for (const AstraSimFlag& each : config::flags_of_astra_sim()) {
    group.title = each.flag.heading;
    group.options.push_back(option_of(each.flag));
    group.options.back().hidden = command != config::Taker::run && !each.has_effect;
  }
  return group;
}

Option key_option(std::string_view key, std::string name) {
  Option option = option_of(config::flag_of(key));
  option.name = std::move(name);
  return option;
}

Option json_option() { return {"json", "", "print JSON"}; }

std::vector<Option> table_options() { return {json_option(), {"csv", "", "print the table as CSV"}}; }

std::vector<OptionGroup> operator+(std::vector<OptionGroup> first, std::vector<OptionGroup> then) {
  first.insert(first.end(), std::make_move_iterator(then.begin()), std::make_move_iterator(then.end()));
  return first;
}

std::vector<config::FlagValue> read_flags(const Arguments& arguments, config::Taker command) {
  std::vector<config::FlagValue> values;
  for (const KeyFlag& flag : config::key_flags(command)) {
    const auto given = arguments.text(flag.name);
    if (!given) continue;
    const std::string text = with_unit(*given, flag.bare_unit);
    const std::string option = fmt::format("--{}", flag.name);
    read_option(arguments, flag.name, [&] { flag.check(text, option); });
    values.push_back({flag.key, text, option});
  }
  return values;
}

config::Inputs read_inputs(const Arguments& arguments, std::string_view command, bool system_only) {
  config::Inputs inputs;
  inputs.system_only = system_only;
  inputs.overrides = settings(arguments, command);
  const bool astra_sim = any_astra_sim(arguments);
  if (arguments.positional() && astra_sim)
    refuse_usage(fmt::format("orrery {}: both '{}' and ASTRA-sim's files are given. Give one of them.", command,
                             *arguments.positional()));
  if (!arguments.positional() && !astra_sim)
    refuse_usage(
        fmt::format("orrery {}: no configuration. Give CONFIG.yaml, or ASTRA-sim's files (see 'orrery {} --help').",
                    command, command));
  if (astra_sim) {
    if (!inputs.overrides.empty())
      refuse_usage(fmt::format("orrery {}: --set goes with CONFIG.yaml, not with ASTRA-sim's files.", command));
    inputs.astra_sim = read_astra_sim_flags(arguments, command, system_only);
  } else {
    inputs.file = *arguments.positional();
  }
  return inputs;
}

void read_flags_of(const Arguments& arguments, config::Taker command, std::string_view name, config::Inputs& inputs) {
  constexpr std::string_view size_key = "system.npus";
  inputs.flags = read_flags(arguments, command);
  const auto size = std::ranges::find(inputs.flags, size_key, &config::FlagValue::key);
  if (size == inputs.flags.end()) return;
  if (inputs.astra_sim)
    refuse_usage(fmt::format("orrery {}: --npus goes with CONFIG.yaml, not with ASTRA-sim's files.", name));
  inputs.overrides.push_back(fmt::format("{}={}", size_key, size->text));
  inputs.flags.erase(size);
}

std::optional<trace::Dependencies> dependencies_of(const Arguments& arguments) {
  constexpr std::string_view name = "dependencies";
  const auto text = arguments.text(name);
  if (!text) return {};
  std::optional<trace::Dependencies> value;
  read_option(arguments, name, [&] { value = config::parse_dependencies(*text, name); });
  return value;
}

std::optional<trace::StepChoice> step_of(const Arguments& arguments) {
  const auto text = arguments.text("step");
  if (!text) return {};
  const auto step = config::parse_step(*text);
  if (!step) arguments.refuse("step", "last, all, or the number of a step");
  return step;
}

}  // namespace orrery::cli
