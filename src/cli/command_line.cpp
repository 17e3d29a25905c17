#include "orrery/cli/command_line.hpp"

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "command.hpp"
#include "option_values.hpp"
#include "orrery/base/suggestion.hpp"

namespace orrery::cli {
namespace {

constexpr std::string_view show_word = "show";

/// Returns what is typed after "orrery", or after "orrery show", for each subcommand.
std::vector<std::string_view> words(bool of_show) {
  std::vector<std::string_view> all;
  for (const CommandEntry* const entry : command_entries()) {
    const Subcommand& command = entry->subcommand();
    if (is_shown(command) == of_show) all.push_back(command.name.substr(of_show ? show_word.size() + 1 : 0));
  }
  if (!of_show) all.push_back(show_word);
  return all;
}

std::string overview() {
  std::string text =
      "Orrery simulates one step of distributed machine-learning training.\n\nUsage:\n  orrery COMMAND [OPTIONS]\n\n"
      "Commands:\n";
  for (const CommandEntry* const entry : command_entries())
    if (const Subcommand& command = entry->subcommand(); !is_shown(command))
      text += fmt::format("  {:<16} {}\n", command.name, command.summary);
  text += fmt::format("  {:<16} {}\n", "show", show_summary);
  text +=
      "\n  -h, --help       print this, or with a command its options\n  --version        print versions and leave\n";
  return text + "\nExample:\n  mpirun -np 2 orrery run configs/llm-64.yaml --output results.h5\n";
}

std::string show_overview() {
  std::string text = fmt::format("{}\n\nUsage:\n  orrery show WHAT [OPTIONS]\n\nWhat:\n", show_summary);
  for (const CommandEntry* const entry : command_entries())
    if (const Subcommand& command = entry->subcommand(); is_shown(command))
      text += fmt::format("  {:<16} {}\n", command.name.substr(show_word.size() + 1), command.summary);
  return text + "\nExample:\n  orrery show topology configs/llm-64.yaml\n";
}

Command help(std::string text, int exit_code = 0) { return once(HelpCommand{std::move(text), exit_code}, print_help); }

/// Reads the arguments of a subcommand; nothing if there is none of this name.
std::optional<Command> read(const std::string& name, std::span<const char* const> rest) {
  const auto all = command_entries();
  const auto entry = std::ranges::find_if(all, [&](const auto* each) { return each->subcommand().name == name; });
  if (entry == all.end()) return {};
  const Arguments arguments((*entry)->subcommand(), rest);
  return arguments.help() ? help(help_text((*entry)->subcommand())) : (*entry)->read(arguments);
}

Command read_show(std::span<const char* const> rest) {
  const std::string_view what = rest.empty() ? std::string_view("") : rest[0];
  if (what.empty()) refuse_usage(fmt::format("orrery show: of what? Give {}.", list(words(true))));
  if (what == "--help" || what == "-h" || what == "help") return help(show_overview());
  if (auto command = read(fmt::format("show {}", what), rest.subspan(1))) return *std::move(command);
  refuse_usage(fmt::format("orrery show: unknown '{}'. {}", what, suggestion(what, words(true))));
}

}  // namespace

int print_help(const HelpCommand& asked) {
  fmt::print(asked.exit_code == 0 ? stdout : stderr, "{}\n", asked.text);
  return asked.exit_code;
}

Command parse_command_line(std::span<const char* const> arguments) {
  if (arguments.size() < 2) return help(overview(), 2);
  const std::string_view first = arguments[1];
  const auto rest = arguments.subspan(2);
  if (first == "help" && !rest.empty()) {  // "help run" is "run --help"
    std::vector<const char*> asked = {arguments[0]};
    asked.insert(asked.end(), rest.begin(), rest.end());
    asked.push_back("--help");
    return parse_command_line(asked);
  }
  if (first == "--help" || first == "-h" || first == "help") return help(overview());
  if (first == "--version")
    return {VersionCommand{}, [](const VersionCommand& command, const ProgramContext&) {
              print_version(command);
              return 0;
            }};
  if (first == show_word) return read_show(rest);
  if (first.find(' ') == std::string_view::npos)  // "show trace" is two words
    if (auto command = read(std::string(first), rest)) return *std::move(command);
  if (first.starts_with('-'))
    refuse_usage(fmt::format("unknown option '{}' before a command. See 'orrery --help'.", first));
  refuse_usage(fmt::format("unknown command '{}'. {}", first, suggestion(first, words(false))));
}

}  // namespace orrery::cli
