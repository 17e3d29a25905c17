#include <string_view>

#include "command.hpp"
#include "orrery/show/commands.hpp"

namespace orrery::cli {
namespace {

Subcommand presets_subcommand(std::string_view name, std::string_view summary, std::string_view example) {
  return {name, summary, "", example, {{"Output", {Option{"json", "", "print JSON"}}}}};
}

const Subcommand& show_models_subcommand() {
  static const Subcommand command = presets_subcommand(
      "show models", "List the models that a configuration may name, with their sizes.", "  orrery show models");
  return command;
}

const Subcommand& show_systems_subcommand() {
  static const Subcommand command =
      presets_subcommand("show systems", "List the systems that a configuration may name: NPUs, network, peak, memory.",
                         "  orrery show systems");
  return command;
}

const Subcommand& show_stacks_subcommand() {
  static const Subcommand command = presets_subcommand(
      "show stacks", "List the stacks of hardware and software, and what they were fitted to.", "  orrery show stacks");
  return command;
}

const Subcommand& show_prices_subcommand() {
  static const Subcommand command = presets_subcommand(
      "show prices", "List the prices that a configuration may name, with their dates.", "  orrery show prices");
  return command;
}

show::ShowPresetsCommand preset_options(const Arguments& arguments, show::ShowPresetsCommand::Kind kind) {
  return {kind, arguments.flag("json").value_or(false)};
}

}  // namespace

extern const CommandEntry show_models_entry;
const CommandEntry show_models_entry{show_models_subcommand, [](const Arguments& arguments) {
                                       return once(preset_options(arguments, show::ShowPresetsCommand::Kind::models),
                                                   show::show_presets);
                                     }};
extern const CommandEntry show_systems_entry;
const CommandEntry show_systems_entry{show_systems_subcommand, [](const Arguments& arguments) {
                                        return once(preset_options(arguments, show::ShowPresetsCommand::Kind::systems),
                                                    show::show_presets);
                                      }};
extern const CommandEntry show_stacks_entry;
const CommandEntry show_stacks_entry{show_stacks_subcommand, [](const Arguments& arguments) {
                                       return once(preset_options(arguments, show::ShowPresetsCommand::Kind::stacks),
                                                   show::show_presets);
                                     }};
extern const CommandEntry show_prices_entry;
const CommandEntry show_prices_entry{show_prices_subcommand, [](const Arguments& arguments) {
                                       return once(preset_options(arguments, show::ShowPresetsCommand::Kind::prices),
                                                   show::show_presets);
                                     }};

}  // namespace orrery::cli
