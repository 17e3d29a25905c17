#include "orrery/run/collect.hpp"

#include <algorithm>
#include <map>
#include <span>
#include <tuple>
#include <utility>

#include "orrery/base/host.hpp"
#include "orrery/communicator/communications.hpp"
#include "orrery/config/provenance.hpp"
#include "orrery/fold/folding.hpp"
#include "orrery/model/load_places.hpp"
#include "orrery/pdes/load_recorder.hpp"
#include "orrery/run/jobs_alone.hpp"
#include "orrery/topology/dimension.hpp"

namespace orrery::run {
namespace {

results::KernelRecord kernel_record(const pdes::Statistics& statistics) { return {statistics, peak_memory()}; }

results::RunInputs inputs_of(const config::Configuration& configuration, const std::string& command_line) {
  results::RunInputs inputs{command_line, configuration.to_yaml(false), {}};
  inputs.texts = configuration.inputs;
  if (const auto& groups = configuration.workload.groups_text) inputs.texts.push_back(*groups);
  if (const auto& partition = configuration.partition_text) inputs.kernel_texts.push_back(*partition);
  return inputs;
}

results::NetworkDescription network_of(const config::Configuration& configuration, const Preparation& preparation) {
  results::NetworkDescription network;
  for (const auto& dimension : configuration.dimensions) {
    network.dimension_sizes.push_back(dimension.size);
    network.links.push_back(topology::directed_links(dimension) * (preparation.num_npus() / dimension.size));
  }
  network.sharers = preparation.sharers();
  network.has_links = configuration.execution.goes_over_links();
  network.lies_on_graph = configuration.execution.network.graph != nullptr;
  network.has_packets = network.has_links && configuration.execution.network.model->sends_packets;
  if (network.has_packets) network.recording = configuration.execution.network.recording;
  return network;
}

/// Returns what the blocks of NPUs did, as far as this rank knows.
results::Load load_of(const model::RankModel& model, const pdes::LoadRecorder& recorder) {
  results::Load load{.record = recorder.record(),
                     .runs_ahead = !model.run().options.goes_over_links(),
                     .num_npus = model.run().hosting.num_npus(),
                     .communicators = {}};
  const std::vector<Rank> as_ranks = model::blocks_of_npus(load.num_npus, load.record.num_blocks);
  for (const communicator::CommunicatorSpec& spec : model.run().communicators) {
    const auto blocks = communicator::ranks_of(spec, as_ranks);
    if (blocks.size() == 1) continue;
    results::LoadCommunicator communicator{.id = spec.id.value(), .host = 0, .blocks = {}};
    communicator.host =
        static_cast<std::uint32_t>(as_ranks[communicator::host_npu(spec, load.num_npus).index()].value());
    for (const Rank block : blocks) communicator.blocks.push_back(static_cast<std::uint32_t>(block.value()));
    load.communicators.push_back(std::move(communicator));
  }
  return load;
}

/// Describes how the library times collectives, each distinct one once. `preparation` and `engine` must outlive it.
class LibraryRecords {
 public:
  LibraryRecords(const Preparation& preparation, collective::Engine& engine)
      : preparation_(preparation), engine_(engine) {}

  results::LibraryRecord operator()(const communicator::CollectiveRecord& record) {
    const collective::GroupLayout*& layout = layouts_[record.group];
    if (layout == nullptr) {
      const communicator::CommunicatorSpec& spec = preparation_.communicators()[record.group.index()];
      layout = engine_.layout(spec.group->members, spec.dimensions, spec.custom).get();
    }
    const auto [found, is_new] = known_.try_emplace({layout, record.kind, record.size});
    if (is_new) found->second = made(*layout, static_cast<collective::Kind>(record.kind), record.size);
    return found->second;
  }

 private:
  results::LibraryRecord made(const collective::GroupLayout& layout, collective::Kind kind, Bytes size) const {
    results::LibraryRecord record;
    const auto figures = engine_.figures(layout, kind, size);
    if (figures.phases.empty() || !figures.phases.front().library) return record;
    const auto& [time, range, correction] = *figures.phases.front().library;
    const auto names = results::library_algorithms();
    const auto found = std::ranges::find(names, time.algorithm);
    record.algorithm = static_cast<std::uint8_t>(found == names.end() ? 0 : found - names.begin());
    record.bound = static_cast<std::uint8_t>(time.bound.kind);
    record.dimension = time.bound.dimension;
    record.is_extrapolated = !range.reasons.empty();
    record.bytes = time.bound.bytes;
    record.capacity = time.bound.capacity;
    record.share = time.bound.share;
    record.latency = time.latency;
    record.ramp = time.ramp;
    record.transfer = time.transfer;
    record.error = range.error;
    return record;
  }

  const Preparation& preparation_;
  collective::Engine& engine_;
  std::map<GroupId, const collective::GroupLayout*> layouts_;  ///< which the engine keeps
  std::map<std::tuple<const collective::GroupLayout*, std::uint8_t, Bytes>, results::LibraryRecord> known_;
};

}  // namespace

results::RankResults collect(const Preparation& preparation, const Simulation& simulation,
                             parallel::Communicator& world) {
  const model::RankModel& model = simulation.model();
  const auto bytes = model.network().bytes();
  const auto busy = model.network().busy_time();
  const fold::Folding* const folding = preparation.folding();
  const auto of_all = [&](auto records) {
    using Record = typename decltype(records)::value_type;
    return folding ? folding->expand(std::span<const Record>(records), world) : records;
  };
  results::RankResults mine;
  mine.npus = model.npus().records();  // a class has one record for all its NPUs
  mine.collectives = model.communicators().records();
  if (folding) mine.collectives = folding->expand(mine.collectives);
  mine.has_library = has_library(model.run().engine);
  if (mine.has_library) {
    LibraryRecords of(preparation, model.run().engine);
    for (const communicator::CollectiveRecord& record : mine.collectives) mine.library.push_back(of(record));
  }
  mine.collective_sums = model.communicators().sums();
  mine.timeline = of_all(model.npus().timeline());
  mine.usage = of_all(model.npus().usage_timeline());
  std::uint32_t num_names = 0;
  for (const auto& record : mine.timeline) num_names = std::max(num_names, record.name + 1);
  for (std::uint32_t i = 0; i < num_names; ++i) mine.timeline_names.emplace_back(preparation.store().name(i));
  mine.network = {{bytes.begin(), bytes.end()}, {busy.begin(), busy.end()}};
  network::NetworkRecords of_network = model.network_records();
  mine.links = std::move(of_network.links);
  mine.packets = std::move(of_network.packets);
  mine.gpu_kernels = model.npus().gpu_kernels();
  mine.gpu_requests = model.npus().gpu_requests();
  mine.memory = model.memory_servers().stages();
  mine.kernel = kernel_record(simulation.kernel_statistics());
  if (simulation.load() != nullptr) mine.load = load_of(model, *simulation.load());
  mine.host = host_name();
  return mine;
}

results::RunDescription describe(const config::Configuration& configuration, const Preparation& preparation,
                                 const Simulation& simulation, const std::string& command_line) {
  results::RunDescription run;
  run.status = simulation.stopped_at() ? results::Status::interrupted : results::Status::complete;
  run.force = configuration.run.force;
  run.num_npus = preparation.num_npus();
  if (const fold::Folding* const folding = preparation.folding()) {
    run.num_classes = folding->classes().count();
    run.class_of_npu = folding->classes().of_npu;
  }
  run.network = network_of(configuration, preparation);
  run.inputs = inputs_of(configuration, command_line);
  run.wall_time = simulation.wall_seconds();
  // Jobs that differ in this have no step in common: then the whole run counts as one.
  const bool have_common_steps =
      configuration.execution.own_iterations.empty() && configuration.execution.starts.empty();
  run.iterations = have_common_steps ? configuration.execution.iterations : 1;
  run.jobs = describe_jobs(configuration);
  return run;
}

std::optional<cost::Plant> plant_of(const config::Configuration& configuration) {
  if (configuration.prices.empty()) return {};
  return cost::plant_of(configuration.prices, configuration.dimensions, configuration.execution.room());
}

results::TrainingStep training_step(const config::Configuration& configuration, const workload::Description& generated,
                                    const workload::Figures& figures) {
  const auto* const transformer = std::get_if<workload::Transformer>(&generated.model);
  const auto provenance = config::provenance_of(configuration);
  const auto tokens = transformer != nullptr ? static_cast<double>(transformer->sequence) : 0;
  const auto nearest =
      config::nearest_step(provenance, generated.parallel.num_npus(), static_cast<double>(figures.parameters), tokens);
  return {.samples = static_cast<double>(figures.samples),
          .tokens = static_cast<double>(figures.tokens),
          .model_flops = figures.model_flops,
          .masks_scores = transformer != nullptr && transformer->attention.causal,
          .executed_flops = figures.executed_flops,
          .peak_flops = configuration.execution.compute.peak_flops,
          .stages = generated.parallel[workload::Axis::pp],
          .ideal_bubble = generated.parallel.ideal_bubble(),
          .micro_batches = generated.parallel.micro_batches,
          .phase = static_cast<results::TrainingStep::Phase>(generated.parallel.pipeline.phase),
          .certainty = results::Certainty{provenance.deviation,
                                          provenance.basis + (nearest.empty() ? "" : "; nearest: " + nearest)}};
}

}  // namespace orrery::run
