#include "command.hpp"
#include "manual.hpp"
#include "options.hpp"

namespace orrery::cli {
namespace {

const Subcommand& show_man_subcommand() {
  static const Subcommand command{"show man",
                                  "Print a manual page, of orrery or of one of its commands.",
                                  "[COMMAND]",
                                  "  orrery show man | man --local-file -\n"
                                  "  orrery show man show-trace > orrery-show-trace.1",
                                  {}};
  return command;
}

HelpCommand make_show_man(const Arguments& arguments) { return {manual(arguments.positional().value_or("")), 0}; }

}  // namespace

extern const CommandEntry show_man_entry;
const CommandEntry show_man_entry{
    show_man_subcommand, [](const Arguments& arguments) { return once(make_show_man(arguments), print_help); }};

}  // namespace orrery::cli
