#pragma once

#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "logged_job.hpp"
#include "option_table.hpp"
#include "options.hpp"
#include "orrery/cli/command_line.hpp"
#include "orrery/parallel/communicator.hpp"
#include "orrery/parallel/environment.hpp"
#include "orrery/run/stop_guard.hpp"

namespace orrery::cli {

/// A subcommand: what the help tells of it, and how its arguments become what it does. Each is in a file of its own,
/// and has a line in registry.cpp.
struct CommandEntry {
  const Subcommand& (*subcommand)();
  Command (*read)(const Arguments& arguments);  ///< Throws Error (usage)
};

/// Returns the subcommands, "show ..." included, in the order of the help.
std::span<const CommandEntry* const> command_entries();

/// Returns what the help tells of each of them.
std::vector<const Subcommand*> subcommands();

/// Says whether a subcommand is one of `orrery show`.
inline bool is_shown(const Subcommand& command) { return command.name.starts_with("show "); }

/// What `orrery show` does, in one line.
inline constexpr std::string_view show_summary =
    "Print results, a trace, a topology, a collective, tables, a plan, how a run went, what more ranks gain, keys, a "
    "manual; write a timeline.";

/// What the MPI job of a command has.
struct CommandJob {
  const std::string& command_line;  ///< command line as the user wrote it
  parallel::Communicator& world;
  run::StopGuard& guard;  ///< not started
};

/// Returns a command that all ranks carry out together.
template <class Options>
Command as_job(Options options, void (*body)(const Options&, const CommandJob&)) {
  return {std::move(options), [body](const Options& given, const ProgramContext& program) {
            return program.launch([&](parallel::Communicator& world, run::StopGuard& guard) {
              body(given, {program.command_line, world, guard});
            });
          }};
}

/// Returns a command that one process carries out, whatever a launcher has started. One that returns nothing succeeds
/// if it does not throw.
template <class Options, class Result>
Command once(Options options, Result (*body)(const Options&)) {
  return {std::move(options), [body](const Options& given, const ProgramContext&) {
            if (parallel::is_copy_by_launcher()) return 0;
            const LoggedJob job;
            if constexpr (std::is_void_v<Result>) {
              body(given);
              return 0;
            } else {
              return body(given);
            }
          }};
}

/// Prints the help on standard output if it was asked for, else on standard error. Returns the exit code.
int print_help(const HelpCommand& help);
/// `orrery --version`: prints the versions of the program and of its libraries.
void print_version(const VersionCommand& command);

}  // namespace orrery::cli
