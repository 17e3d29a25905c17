#include <functional>
#include <source_location>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "logged_job.hpp"
#include "orrery/base/text.hpp"
#include "orrery/check/excess.hpp"
#include "orrery/config/read.hpp"
#include "orrery/run/agreed.hpp"
#include "orrery/run/jobs_alone.hpp"
#include "orrery/run/simulate.hpp"
#include "orrery/show/brief_summary.hpp"
#include "orrery/show/summary.hpp"
#include "orrery/study/advice.hpp"
#include "orrery/study/bounds.hpp"
#include "serve.hpp"

#include "command.hpp"
#include "config_options.hpp"
#include "option_values.hpp"
#include "options.hpp"

namespace orrery::cli {
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

/// Prints the answer of the run first, then what the step depends on if the user asks for it.
void print_brief(const run::RunDetails& run, const config::Inputs& inputs, const config::Configuration& configuration) {
  const show::Terminal terminal = show::terminal_of(configuration.run.colours);
  const study::Advice advice = study::advise(run.gathered, inputs, configuration);
  for (const std::string& line : show::brief_summary(run.gathered, run.description, configuration, advice, terminal))
    fmt::print("{}\n", line);
}

/// Prints what the user asked for. On rank 0.
void print_results(const run::RunDetails& run, const config::Inputs& inputs,
                   const config::Configuration& configuration) {
  if (configuration.run.print_npus) show::print_npus(run.gathered.npus);
  if (configuration.run.sensitivity && run.gathered.metrics)
    for (const std::string& line :
         show::sensitivity_lines(study::find_sensitivities(inputs, configuration), run.gathered.metrics->step_time))
      fmt::print("{}\n", line);
  if (configuration.run.quiet) return;
  if (!configuration.run.verbose) return print_brief(run, inputs, configuration);
  if (!run.folding.empty()) fmt::print("{}\n", run.folding);
  if (run.figures) fmt::print("{}", workload::report(*run::workload_of_all(configuration), *run.figures));
  show::print_summary(run.gathered, run.description, configuration);
}

/// Returns what a step keeps at the least with one change of its parallelism: "zero: 1 takes 61 GB"; empty if that does
/// not fit either.
std::string smaller_plan(config::Configuration configuration, std::string_view change,
                         const std::function<void(workload::Parallel&)>& apply) {
  auto& parallel = configuration.workload.generated->parallel;
  const workload::Parallel before = parallel;
  apply(parallel);
  if (parallel == before) return {};
  try {
    configuration.workload.generated->validate();
    const Bytes needed = study::least_peak_memory(configuration), room = configuration.execution.room();
    if (needed == Bytes(0) || needed > room) return {};
    return fmt::format("{} takes {}", change, size_text(needed.count(), room.count()));
  } catch (const Error&) {
    return {};
  }
}

/// Returns what would fit where a generated training step does not; empty if nothing simple does.
std::string what_would_fit(const config::Configuration& configuration) {
  const auto& generated = configuration.workload.generated;
  if (!generated || generated->parallel.is_inference()) return {};
  using workload::Parallel;
  const auto zero = [](std::uint32_t stage) { return [stage](Parallel& parallel) { parallel.sharding.zero = stage; }; };
  const auto recompute = [](Parallel& parallel) { parallel.recompute = workload::Recompute::full; };
  std::vector<std::string> plans;
  for (std::string plan :
       {smaller_plan(configuration, "zero: 1", zero(1)), smaller_plan(configuration, "recompute: full", recompute),
        smaller_plan(configuration, "zero: 3", zero(3)),
        smaller_plan(configuration, "zero: 3 with recompute: full", [&](Parallel& parallel) {
          zero(3)(parallel);
          recompute(parallel);
        })})
    if (!plan.empty() && plans.size() < 2) plans.push_back(std::move(plan));
  return plans.empty() ? "`orrery best` finds a parallelism that fits."
                       : fmt::format(
                             "It would fit with another workload.parallel: {}; `orrery best` finds the fastest "
                             "one that fits.",
                             fmt::join(plans, ", "));
}

/// Simulates a run. An error about memory says what would fit. Collective.
run::RunResults simulate_or_advise(const config::Configuration& configuration, parallel::Communicator& world,
                                   const run::RunOptions& options) {
  try {
    return run::simulate(configuration, world, options);
  } catch (const Error& error) {
    const std::string advice = check::is_excess(error) ? what_would_fit(configuration) : "";
    if (advice.empty()) throw;
    throw Error(error.code(), error.place(), fmt::format("{} {}", error.text(), advice));
  }
}

void run(const RunCommand& command, const CommandJob& job) {
  const std::string& command_line = job.command_line;
  parallel::Communicator& world = job.world;
  run::RunOptions options{.writes_results = true, .command_line = command_line};
  honour_signals();
  job.guard.start(world.rank());
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
  const run::RunResults results = simulate_or_advise(configuration, world, options);
  if (results.stopped_at) end_interrupted(results, configuration.run, world);
  if (world.is_root()) print_results(*results.details, command.inputs, configuration);
}

const Subcommand& run_subcommand() {
  static const Subcommand command{
      "run", "Simulate a training workload and write its results.", "CONFIG.yaml",
      "  mpirun -np 2 orrery run configs/llm-64.yaml --set system.collectives.chunks=8 --output results.h5\n"
      "  orrery run --workload-configuration=traces/workload --system-configuration=system.json \\\n"
      "             --network-configuration=network.yml --remote-memory-configuration=remote_memory.json "
      "--output=results.h5",
      key_groups(config::Taker::run) + std::vector{own_inputs(), astra_sim_inputs(config::Taker::run)}};
  return command;
}

RunCommand make_run(const Arguments& arguments) {
  RunCommand command{read_inputs(arguments, "run", false)};
  read_flags_of(arguments, config::Taker::run, "run", command.inputs);
  return command;
}

}  // namespace

extern const CommandEntry run_entry;
const CommandEntry run_entry{run_subcommand,
                             [](const Arguments& arguments) { return as_job(make_run(arguments), run); }};

}  // namespace orrery::cli
