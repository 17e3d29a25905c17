#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "option_table.hpp"
#include "orrery/config/flags.hpp"
#include "orrery/config/read.hpp"
#include "orrery/trace/store.hpp"

namespace orrery::cli {

// Options of configurations and traces that several subcommands take, and what was given for them. All that read throw
// Error (usage).

/// Returns the options of inputs that most subcommands take.
OptionGroup own_inputs();
/// Returns the options of a subcommand that stand for keys, under the headings of their flags.
std::vector<OptionGroup> key_groups(config::Taker command);
/// Returns ASTRA-sim's flags. All commands take those without effect, and the help of `run` names them.
OptionGroup astra_sim_inputs(config::Taker command);
/// Returns an option of this name that stands for a key with a flag.
Option key_option(std::string_view key, std::string name);
Option json_option();
std::vector<Option> table_options();
/// Returns the groups of both.
std::vector<OptionGroup> operator+(std::vector<OptionGroup> first, std::vector<OptionGroup> then);

/// Returns the configuration that a command names.
config::Inputs read_inputs(const Arguments& arguments, std::string_view command, bool system_only);
/// Returns the values that the flags of keys have.
std::vector<config::FlagValue> read_flags(const Arguments& arguments, config::Taker command);
/// Reads the flags of keys. The number of NPUs is a setting: it decides what other keys mean.
void read_flags_of(const Arguments& arguments, config::Taker command, std::string_view name, config::Inputs& inputs);

/// Returns the value of --dependencies, and the step that --step names, if they are given.
std::optional<trace::Dependencies> dependencies_of(const Arguments& arguments);
std::optional<trace::StepChoice> step_of(const Arguments& arguments);

}  // namespace orrery::cli
