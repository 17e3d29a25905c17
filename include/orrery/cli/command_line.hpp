#pragma once

#include <any>
#include <functional>
#include <span>
#include <string>
#include <utility>

#include "orrery/cli/job.hpp"

namespace orrery::cli {

/// Runs the body of an MPI job and returns the exit code.
using JobLauncher = std::function<int(const JobBody&)>;

/// What a command has of the process that carries it out.
struct ProgramContext {
  const std::string& command_line;  ///< command line as the user wrote it, for results
  const JobLauncher& launch;        ///< runs commands that are MPI jobs, and reports their failures
};

/// A subcommand with its options.
class Command {
 public:
  /// `body(options, context)` carries the command out and returns the exit code of the program.
  template <class Options, class Body>
  Command(Options options, Body body)
      : options_(std::move(options)), body_([body](const std::any& given, const ProgramContext& context) {
          return body(*std::any_cast<Options>(&given), context);
        }) {}

  /// Returns the options if they are of this type, else null.
  template <class Options>
  const Options* options() const {
    return std::any_cast<Options>(&options_);
  }
  /// Carries the command out. Throws Error for a failure outside MPI jobs.
  int execute(const ProgramContext& context) const { return body_(options_, context); }

 private:
  std::any options_;
  std::function<int(const std::any&, const ProgramContext&)> body_;
};

/// Parses main's arguments, the program's name included; touches no file. Throws Error (usage): an unknown subcommand
/// or option (with the nearest known one), a missing or superfluous argument, a value that cannot be read. Cost
/// O(length of the arguments).
Command parse_command_line(std::span<const char* const> arguments);

}  // namespace orrery::cli
