#include "plan.hpp"

#include <algorithm>
#include <set>

#include "orrery/base/error.hpp"

namespace orrery::collective {
namespace {

/// Phases over several axes: `baseline` takes the kind in each, `local_bw_aware` all-reduce goes up, turns and comes
/// down.
std::vector<Phase> grid_phases(const Options& options, const Layout& layout, Kind kind) {
  const std::vector<Algorithm>& list = algorithms(options, kind);
  const auto num_axes = static_cast<std::uint32_t>(layout.axes.size());
  const auto phase = [&](std::uint32_t a, Kind phase_kind, bool down) {
    const std::uint32_t d = layout.axes[a].dimensions[0];
    return Phase{&layout.axes[a], {list[d], phase_kind, {}, true}, a, down};
  };
  std::vector<Phase> phases;
  if (kind == Kind::all_reduce && options.optimization == Optimization::local_bw_aware) {
    for (std::uint32_t a = 0; a + 1 < num_axes; ++a) phases.push_back(phase(a, Kind::reduce_scatter, false));
    phases.push_back(phase(num_axes - 1, Kind::all_reduce, false));
    for (std::uint32_t a = num_axes - 1; a-- > 0;) phases.push_back(phase(a, Kind::all_gather, true));
    return phases;
  }
  for (std::uint32_t a = 0; a < num_axes; ++a) phases.push_back(phase(a, kind, false));
  if (kind == Kind::all_gather) std::ranges::reverse(phases);
  return phases;
}

/// With several queues an all-reduce's way up takes turns in the first half, its way down in the second
/// (docs/model.md, 7); everything else takes turns in all.
std::vector<Stage> stages_of(const Options& options, Kind kind, const std::vector<Phase>& phases) {
  const bool halves = kind == Kind::all_reduce && options.optimization == Optimization::local_bw_aware;
  const std::uint32_t q = options.queues;
  std::vector<Stage> stages;
  for (const Phase& phase : phases) {
    Stage stage;
    stage.axis = phase.axis_idx;
    stage.turn = phase.down ? 1 : 0;
    stage.first_queue = phase.down && q > 1 ? q / 2 : 0;
    stage.num_queues = !halves ? q : std::max(phase.down ? q - q / 2 : q / 2, 1U);
    stages.push_back(stage);
  }
  return stages;
}

std::uint64_t in_service(const Options& options) {
  return (std::uint64_t{options.active_chunks} + options.queues - 1) / options.queues;
}

}  // namespace

Kind parent(Kind kind) {
  switch (kind) {
    case Kind::broadcast:
    case Kind::reduce:
    case Kind::barrier:
      return Kind::all_reduce;
    case Kind::gather:
      return Kind::all_gather;
    case Kind::scatter:
      return Kind::reduce_scatter;
    default:
      return kind;
  }
}

const std::vector<Algorithm>& algorithms(const Options& options, Kind kind) {
  switch (parent(kind)) {
    case Kind::all_reduce:
      return options.all_reduce;
    case Kind::all_gather:
      return options.all_gather;
    case Kind::reduce_scatter:
      return options.reduce_scatter;
    default:
      return options.all_to_all;
  }
}

Chunks cut(const Options& options, Kind kind, Bytes size, std::uint64_t num_npus, std::uint32_t num_members) {
  if (kind == Kind::barrier) return {1, Bytes(num_members)};
  Bytes chunk = size / options.splits;
  if (parent(kind) != Kind::all_gather && chunk < Bytes(num_npus)) return {options.splits, Bytes(num_npus)};
  chunk = std::max(chunk, Bytes(1));
  return {std::max<std::uint64_t>((size.count() + chunk.count() - 1) / chunk.count(), 1), chunk};
}

std::vector<Phase> phases_of(const Options& options, const Layout& layout, Kind kind, Bytes chunk) {
  if (layout.num_members == 1) return {};
  const Kind shape_kind = parent(kind);
  const std::vector<Algorithm>& list = algorithms(options, kind);
  const auto one = std::ranges::find_if(list, &Algorithm::whole_communicator);
  std::vector<Phase> phases;
  if (layout.always_ring)
    phases.push_back({&*layout.line, {Algorithm{}, shape_kind, {}, true}, 0, false});
  else if (one != list.end())
    phases.push_back({&*layout.line, {*one, shape_kind, {}, true}, 0, false});
  else if (layout.axes.empty())
    phases.push_back({&*layout.line, {Algorithm{}, shape_kind, {}, true}, 0, false});
  else
    phases = grid_phases(options, layout, shape_kind);
  for (Phase& phase : phases) {
    phase.shape.size = chunk;
    phase.shape.reduces = kind != Kind::broadcast && kind != Kind::scatter;
    if (phase.shape.kind == Kind::reduce_scatter) chunk = chunk / phase.axis->size;
    if (phase.shape.kind == Kind::all_gather) chunk = times(chunk, phase.axis->size);
  }
  return phases;
}

std::vector<std::uint64_t> shares(const Rules& rules, const std::vector<Stage>& stages, const Options& options,
                                  std::uint64_t num_chunks) {
  std::vector<std::set<std::uint32_t>> queues;
  for (const Stage& stage : stages) {
    if (queues.size() <= stage.axis) queues.resize(stage.axis + 1);
    for (std::uint32_t q = 0; q < stage.num_queues; ++q) queues[stage.axis].insert(stage.first_queue + q);
  }
  std::vector<std::uint64_t> result;
  for (const std::set<std::uint32_t>& used : queues)
    result.push_back(rules.share_bandwidth ? std::min(num_chunks, used.size() * in_service(options)) : 1);
  return result;
}

Plan::Plan(const topology::Topology& topology, const Options& options, const Layout& layout, Kind kind, Bytes size) {
  const Chunks chunks = cut(options, kind, size, topology.num_npus(), layout.num_members);
  const std::vector<Phase> phases = phases_of(options, layout, kind, chunks.size);
  std::vector<Stage> stages = stages_of(options, parent(kind), phases);
  const std::vector<std::uint64_t> share = shares(topology.rules(), stages, options, chunks.count);
  const bool fixed_delay = layout.subgroup && topology.rules().fixed_subgroup_endpoint_delay;
  const Ps endpoint_delay = (fixed_delay ? Time::from_ns(10) : options.endpoint_delay).ps();
  for (std::size_t p = 0; p < phases.size(); ++p) {
    const Phase& phase = phases[p];
    const LineContext context{
        topology, *phase.axis, endpoint_delay, options.local_memory, options.rendezvous, share[phase.axis_idx],
        0,        false};
    stops_.push_back({phase.axis, make_lines(phase.shape, context)});
    alike_ = alike_ && stops_.back().program->alike();
    for (const std::uint64_t chunk : {0U, 1U}) stages[p].duration[chunk] = stops_.back().program->duration(chunk);
  }
  schedule_ = make_schedule(stages, chunks.count, in_service(options), options.queues);
}

std::size_t Plan::memory() const {
  std::size_t bytes = sizeof(Plan) + schedule_.services.size() * sizeof(Service);
  for (const Stop& stop : stops_) bytes += sizeof(Stop) + stop.program->memory();
  return bytes;
}

void Plan::run(std::span<const Ps> arrivals, std::span<Ps> completions, Workspace& workspace) const {
  const std::size_t n = arrivals.size();
  workspace.arrays.resize(schedule_.num_arrays * n);
  workspace.times.resize(n);
  std::ranges::copy(arrivals, completions.begin());
  for (const Service& service : schedule_.services) {
    const Stop& stop = stops_[service.stage];
    const std::uint32_t* members = stop.axis->members.data();
    Ps* times = workspace.times.data();
    const Ps* starts =
        service.previous == Service::none ? arrivals.data() : workspace.arrays.data() + service.previous * n;
    if (service.predecessor == Service::none) {
      for (std::size_t i = 0; i < n; ++i) times[i] = starts[members[i]];
    } else {
      const Ps* held = workspace.arrays.data() + service.predecessor * n;
      for (std::size_t i = 0; i < n; ++i) times[i] = std::max(starts[members[i]], held[members[i]]);
    }
    stop.program->run(service.chunk, workspace.times, workspace.scratch);
    Ps* finishes = workspace.arrays.data() + service.result * n;
    for (std::size_t i = 0; i < n; ++i) finishes[members[i]] = times[i];
    if (service.stage + 1 < stops_.size()) continue;
    for (std::size_t i = 0; i < n; ++i) completions[i] = std::max(completions[i], finishes[i]);
  }
}

}  // namespace orrery::collective
