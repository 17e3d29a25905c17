#include "command.hpp"
#include "completion.hpp"
#include "option_values.hpp"
#include "options.hpp"

namespace orrery::cli {
namespace {

const Subcommand& show_completion_subcommand() {
  static const Subcommand command{"show completion",
                                  "Print what lets a shell complete commands, options and their values.",
                                  "SHELL",
                                  "  source <(orrery show completion bash)\n"
                                  "  orrery show completion fish > ~/.config/fish/completions/orrery.fish",
                                  {},
                                  {std::begin(shells), std::end(shells)}};
  return command;
}

HelpCommand make_show_completion(const Arguments& arguments) {
  if (!arguments.positional()) refuse_usage("orrery show completion: for which shell? Give bash, zsh or fish.");
  return {completion(*arguments.positional()), 0};
}

}  // namespace

extern const CommandEntry show_completion_entry;
const CommandEntry show_completion_entry{show_completion_subcommand, [](const Arguments& arguments) {
                                           return once(make_show_completion(arguments), print_help);
                                         }};

}  // namespace orrery::cli
