#include <fmt/format.h>

#include <chrono>
#include <source_location>
#include <string>

#include "logged_job.hpp"
#include "orrery/base/text.hpp"
#include "orrery/config/read.hpp"
#include "orrery/run/agreed.hpp"
#include "orrery/run/jobs_alone.hpp"
#include "orrery/run/simulate.hpp"
#include "serve.hpp"
#include "subcommands.hpp"
#include "summary.hpp"

namespace orrery::app {
namespace {

/// Ends all ranks with the exit code of a run that was stopped on request. Collective.
[[noreturn]] void end_interrupted(const run::RunResults& results, const config::RunOptions& options,
                                  parallel::Communicator& world) {
  world.agree([&] {
    if (!world.is_root()) return;
    const std::string goes_on =
        !results.checkpoint.empty() ? fmt::format("with --restart={} goes on from there", results.checkpoint.string())
        : !options.restart.empty()  ? fmt::format("goes on from {} again", options.restart.string())
                                    : "runs again from the start";
    throw Error(
        ErrorCode::interrupted,
        fmt::format("stopped by {} at simulated {}: {} holds what is known so far (status \"interrupted\"). The same "
                    "command {}, and replaces this file when it ends",
                    results.stop_reason.empty() ? "a request" : results.stop_reason, readable(*results.stopped_at),
                    results.file.string(), goes_on));
  });
  ensure_failed("a run that was stopped ends with an error", std::source_location::current());
}

/// Prints what the user asked for. On rank 0.
void print_results(const run::RunDetails& run, const config::Configuration& configuration) {
  if (configuration.run.print_npus) print_npus(run.gathered.npus);
  if (configuration.run.quiet) return;
  if (!run.folding.empty()) fmt::print("{}\n", run.folding);
  if (run.figures) fmt::print("{}", workload::report(*run::workload_of_all(configuration), *run.figures));
  print_summary(run.gathered, run.description, configuration);
}

}  // namespace

void run(const config::RunCommand& command, const std::string& command_line, parallel::Communicator& world,
         run::StopGuard& guard) {
  run::RunOptions options{.writes_results = true, .command_line = command_line};
  honour_signals();
  guard.start(world.rank());
  if (config::is_serving(command.inputs)) {
    const auto serving = run::agreed(world, [&] {
      auto result = config::read_serving(command.inputs);
      run::set_limits(result.system.run, options.start);
      return result;
    });
    return serve(serving, options, world);
  }
  // The limits hold from the moment when this rank has read them.
  const auto configuration = run::agreed(world, [&] {
    auto result = config::read(command.inputs);
    run::set_limits(result.run, options.start);
    return result;
  });
  const run::RunResults results = run::simulate(configuration, world, options);
  if (results.stopped_at) end_interrupted(results, configuration.run, world);
  if (world.is_root()) print_results(*results.details, configuration);
}

}  // namespace orrery::app
