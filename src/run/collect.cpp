#include "orrery/run/collect.hpp"

#include <algorithm>
#include <array>
#include <cmath>
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
  network.has_flits = network.has_links && !configuration.execution.network.flits.empty();
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

  /// Returns the record of a collective, and adds it to the sums.
  results::LibraryRecord operator()(const communicator::CollectiveRecord& record) {
    Group& group = groups_[record.group];
    if (group.layout == nullptr) {
      const communicator::CommunicatorSpec& spec = preparation_.communicators()[record.group.index()];
      group = {collective::layout_of(engine_, *spec.group, spec.dimensions, spec.custom).get(),
               npu::cause_of_group(spec.group->name)};
    }
    const auto kind = static_cast<collective::Kind>(record.kind);
    const auto [found, is_new] = known_.try_emplace({group.layout, record.kind, record.size});
    Known& known = found->second;
    if (is_new)
      known = {
          made(*group.layout, kind, record.size), effect_of(engine_, *group.layout, kind, record.size).savings, {}};
    const Time time = record.finish - record.last_arrival;
    const auto cause = static_cast<std::size_t>(npu::cause_of_collective(group.cause, is_sharded(kind)));
    known.times[cause] += static_cast<SumOfTimes>(time.ps()) * record.members;
    return known.record;
  }

  /// Returns the sums of all collectives of a library that it has recorded.
  std::vector<results::LibrarySum> sums() const {
    Sums sums;
    for (const auto& [key, known] : known_)
      for (std::size_t cause = 0; !known.savings.empty() && cause < npu::num_causes; ++cause)
        if (known.times[cause] > 0) add(static_cast<npu::Cause>(cause), known, sums);
    std::vector<results::LibrarySum> result;
    for (const auto& [key, time] : sums) result.push_back({std::get<0>(key), std::get<1>(key), std::get<2>(key), time});
    return result;
  }

 private:
  struct Group {
    const collective::GroupLayout* layout = nullptr;  ///< which the engine keeps
    npu::Cause cause = npu::Cause::other;
  };
  struct Known {
    results::LibraryRecord record;
    std::vector<double> savings;                         ///< LibraryEffect::savings; empty: no library carries it out
    std::array<SumOfTimes, npu::num_causes> times = {};  ///< ps of all recorded ones, summed over their members
  };
  using Sums = std::map<std::tuple<npu::Cause, results::LibrarySum::What, std::uint32_t>, SumOfTimes>;

  static bool is_sharded(collective::Kind kind) {
    return kind == collective::Kind::all_gather || kind == collective::Kind::reduce_scatter;
  }
  /// Adds the times of collectives that are alike. Whole numbers let sums not depend on the ranks that they come from.
  static void add(npu::Cause cause, const Known& known, Sums& sums) {
    using What = results::LibrarySum::What;
    constexpr double whole = 1e9;
    const SumOfTimes time = known.times[static_cast<std::size_t>(cause)];
    const auto add_share = [&](What what, std::uint32_t index, double share) {
      if (share > 0) sums[{cause, what, index}] += time * static_cast<std::uint64_t>(std::llround(share * whole));
    };
    const results::LibraryRecord& of = known.record;
    add_share(What::time, 0, 1);
    add_share(What::error, 0, of.error);
    for (std::uint32_t d = 0; d < known.savings.size(); ++d) add_share(What::saved, d, known.savings[d]);
    const bool is_moving = of.transfer >= of.latency + of.ramp;
    add_share(What::bound, is_moving ? results::bound_number(of.bound, of.dimension) : 0, 1);
  }

  results::LibraryRecord made(const collective::GroupLayout& layout, collective::Kind kind, Bytes size) const {
    results::LibraryRecord record;
    const auto figures = engine_.figures(layout, kind, size);
    if (figures.phases.empty() || !figures.phases.front().library) return record;
    const auto& [time, range, correction, ratio] = *figures.phases.front().library;
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
  std::map<GroupId, Group> groups_;
  std::map<std::tuple<const collective::GroupLayout*, std::uint8_t, Bytes>, Known> known_;
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
    mine.library_sums = of.sums();
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
  mine.network.flits = std::move(of_network.flits);
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

std::optional<cost::Hardware> hardware_of(const config::Configuration& configuration) {
  if (configuration.prices.empty()) return {};
  return cost::hardware_of(configuration.prices, configuration.dimensions, configuration.execution.room());
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
