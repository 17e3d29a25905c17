#include <sys/resource.h>

#include <algorithm>
#include <chrono>

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include "orrery/app/commands.hpp"
#include "orrery/base/host.hpp"
#include "orrery/base/text.hpp"
#include "orrery/fold/folding.hpp"
#include "orrery/parallel/packing.hpp"
#include "orrery/results/results.hpp"
#include "orrery/workload/figures.hpp"
#include "preparation.hpp"
#include "progress.hpp"
#include "simulation.hpp"
#include "stop_request.hpp"
#include "summary.hpp"

namespace orrery::app {
namespace {

void log_warnings(const config::Configuration& configuration, const Notices& notices) {
  for (const auto& warning : configuration.warnings) spdlog::warn("{}", warning);
  for (const auto& [kind, entry] : notices.entries())
    spdlog::warn("{} (NPU {}{})", entry.text, entry.npu,
                 entry.count > 1 ? fmt::format(" first, {} times in all", entry.count) : "");
}

results::KernelRecord kernel_record(const pdes::Statistics& s) {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return {s, static_cast<std::uint64_t>(usage.ru_maxrss) * 1024};
}

results::RankResults collect(const Preparation& preparation, const Simulation& simulation) {
  const model::RankModel& model = simulation.model();
  const auto bytes = model.network().bytes();
  const auto busy = model.network().busy_time();
  results::RankResults mine;
  const auto of_all = [&](auto records) {
    using Record = typename decltype(records)::value_type;
    return preparation.folding() ? preparation.folding()->expand(std::span<const Record>(records)) : records;
  };
  mine.npus = of_all(model.npus().records());
  mine.collectives = of_all(model.communicators().records());
  mine.collective_sums = model.communicators().sums();
  mine.timeline = of_all(model.npus().timeline());
  mine.usage = of_all(model.npus().usage_timeline());
  std::uint32_t num_names = 0;
  for (const auto& record : mine.timeline) num_names = std::max(num_names, record.name + 1);
  for (std::uint32_t i = 0; i < num_names; ++i) mine.timeline_names.emplace_back(preparation.store().name(i));
  mine.network = {{bytes.begin(), bytes.end()}, {busy.begin(), busy.end()}};
  mine.links = model.link_records();
  mine.memory = model.memory_servers().stages();
  mine.kernel = kernel_record(simulation.kernel_statistics());
  mine.host = host_name();
  return mine;
}

results::RunDescription describe(const config::Configuration& configuration, const Preparation& preparation,
                                 const std::string& command_line, double wall_seconds) {
  results::RunDescription run;
  run.num_npus = preparation.num_npus();
  if (preparation.folding()) run.num_classes = preparation.folding()->classes().count();
  run.groups = preparation.groups();
  for (const auto& dimension : configuration.dimensions) run.dimension_sizes.push_back(dimension.size);
  run.command_line = command_line;
  run.resolved_configuration = configuration.to_yaml(false);
  for (const auto& input : configuration.inputs)
    (input.first == "partition.txt" ? run.kernel_inputs : run.inputs).push_back(input);
  for (const auto& dimension : configuration.dimensions)
    run.links.push_back(topology::directed_links(dimension) * (run.num_npus / dimension.size));
  run.has_links = configuration.executor.goes_over_links();
  run.sharers = preparation.sharers();
  run.wall_time = wall_seconds;
  run.iterations = configuration.executor.iterations;
  return run;
}

/// A step of a generated workload, for the metrics.
results::TrainingStep training_step(const config::Configuration& configuration, const workload::Figures& figures) {
  const auto& generated = *configuration.workload.generated;
  const bool has_tokens = std::holds_alternative<workload::Transformer>(generated.model);
  return {.samples = static_cast<double>(figures.samples),
          .tokens = has_tokens ? static_cast<double>(figures.tokens) : 0,
          .model_flops = figures.model_flops,
          .executed_flops = figures.executed_flops,
          .peak_flops = configuration.executor.compute.peak_flops,
          .stages = generated.parallel[workload::Axis::pp],
          .interleaving = generated.parallel.interleaving,
          .micro_batches = generated.parallel.micro_batches};
}

/// All ranks end with the exit code of a run that was stopped on request.
void refuse_to_be_complete(Time stopped_at, const config::RunOptions& options, parallel::Communicator& world) {
  parallel::Packer packer;
  packer.put_text(stop_reason());
  const std::vector<std::byte> mine = packer.take();
  const auto reasons = world.gather(std::span<const std::byte>(mine), Rank(0));
  world.agree([&] {
    if (!world.is_root()) return;
    std::string reason;
    for (parallel::Unpacker unpacker(reasons); reason.empty() && !unpacker.empty();) reason = unpacker.get_text();
    throw Error(
        ErrorCode::interrupted,
        fmt::format(
            "stopped by {} at simulated {}: {} holds what is known so far (status \"interrupted\"). The same command "
            "runs again from the start, and replaces this file when it ends",
            reason.empty() ? "a request" : reason, readable(stopped_at), options.output.string()));
  });
}

}  // namespace

void run(const config::RunCommand& command, const std::string& command_line, parallel::Communicator& world) {
  const auto start = std::chrono::steady_clock::now();
  heed_signals();
  config::Configuration configuration;
  world.agree([&] { configuration = config::read(command.inputs); });
  const auto& options = configuration.run;
  world.agree([&] {
    if (world.is_root()) results::check_output(options.output, options.force);
  });
  const auto prepared =
      options.fold ? Preparation::folded(configuration, world) : std::make_unique<Preparation>(configuration, world);
  Preparation& preparation = *prepared;
  if (world.is_root()) log_warnings(configuration, preparation.notices());
  Simulation simulation(preparation, options, stop_request(options.max_walltime_s, start), world);
  simulation.run();

  const auto mine = collect(preparation, simulation);
  auto description = describe(configuration, preparation, command_line, simulation.wall_seconds());
  if (simulation.stopped_at()) description.status = results::Status::interrupted;
  std::optional<workload::Figures> figures;
  if (world.is_root() && configuration.workload.generated) {
    figures = workload::figures(*configuration.workload.generated);
    description.step = training_step(configuration, *figures);
  }
  if (world.is_root() && description.has_links)
    description.switches = topology::Fabric(preparation.topology()).switches();
  const auto all = results::write(options.output, description, mine, world);
  if (simulation.stopped_at()) refuse_to_be_complete(*simulation.stopped_at(), options, world);
  if (!world.is_root()) return;
  if (options.print_npus) print_npus(all.npus);
  if (options.quiet) return;
  if (preparation.folding()) fmt::print("{}\n", preparation.folding()->description());
  if (figures) fmt::print("{}", workload::report(*configuration.workload.generated, *figures));
  print_summary(all, description, configuration);
}

}  // namespace orrery::app
