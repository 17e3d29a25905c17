#include "plan.hpp"

#include <algorithm>
#include <map>

#include "orrery/base/error.hpp"
#include "validation.hpp"

namespace orrery::collective {
namespace {

/// With several queues an all-reduce's way up takes turns in the first half, its way down in the second
/// (docs/model.md, 7); everything else takes turns in all.
std::vector<Stage> stages_of(const network::DelayModel& delays, const Options& options, Kind kind, const Route& route) {
  const bool halves = kind == Kind::all_reduce && options.optimization == Optimization::local_bw_aware;
  const std::uint32_t q = options.queues;
  std::vector<Stage> stages;
  for (const Phase& phase : route) {
    Stage stage;
    stage.axis = phase.axis_idx;
    stage.size = phase.shape.size;
    stage.phases_left = static_cast<std::uint32_t>(route.size() - stages.size());
    stage.turn = phase.down ? 1 : 0;
    stage.first_queue = phase.down && q > 1 ? q / 2 : 0;
    stage.num_queues = !halves ? q : std::max(phase.down ? q - q / 2 : q / 2, 1U);
    stage.in_service = in_service(delays, options, phase);
    stages.push_back(stage);
  }
  return stages;
}

}  // namespace

std::uint64_t in_service(const network::DelayModel& delays, const Options& options, const Phase& phase) {
  const std::uint64_t places = (std::uint64_t{options.active_chunks} + options.queues - 1) / options.queues;
  if (phase.shape.algorithm.kind != AlgorithmKind::in_switch) return places;
  return std::min(places, in_switch_places(delays.topology(), options, *phase.axis) / options.queues);
}

std::vector<std::uint64_t> shares(const Rules& rules, const std::vector<Stage>& stages, std::uint64_t num_chunks) {
  std::vector<std::map<std::uint32_t, std::uint64_t>> places;  // [axes] of each queue
  for (const Stage& stage : stages) {
    if (places.size() <= stage.axis) places.resize(stage.axis + 1);
    for (std::uint32_t q = 0; q < stage.num_queues; ++q) places[stage.axis][stage.first_queue + q] = stage.in_service;
  }
  std::vector<std::uint64_t> result;
  for (const auto& queues : places) {
    std::uint64_t count = 0;
    for (const auto& [queue, of_queue] : queues) count += of_queue;
    result.push_back(rules.share_bandwidth ? std::min(num_chunks, count) : 1);
  }
  return result;
}

std::uint32_t sharers(const Rules& rules, const Options& options, const Axis& axis) {
  std::uint32_t most = 1;
  if (!options.sharers.empty() && rules.share_bandwidth)
    for (const std::uint32_t d : axis.dimensions) most = std::max(most, options.sharers[d]);
  return most;
}

Plan::Plan(const network::DelayModel& delays, const Options& options, const GroupLayout& layout, Kind kind,
           Bytes size) {
  const Chunks chunks = cut(options, kind, size, delays.topology().num_npus(), layout.num_members);
  const Routes routes = routes_of(delays, options, layout, kind, chunks);
  Work work;
  work.num_chunks = chunks.count;
  work.route_of = routes.of_chunk;
  std::vector<const Phase*> phases;  // [stages]
  for (const Route& route : routes.routes) {
    const std::vector<Stage> stages =
        stages_of(delays, options, goes_whole(options, kind) ? kind : parent(kind), route);
    work.routes.push_back({static_cast<std::uint32_t>(work.stages.size()), static_cast<std::uint32_t>(stages.size())});
    work.stages.insert(work.stages.end(), stages.begin(), stages.end());
    for (const Phase& phase : route) phases.push_back(&phase);
  }
  const std::vector<std::uint64_t> share = shares(options.rules, work.stages, chunks.count);
  for (std::size_t p = 0; p < phases.size(); ++p) {
    const Phase& phase = *phases[p];
    LineContext context = line_context(delays, options, layout, *phase.axis);
    context.share = share[phase.axis_idx] * sharers(options.rules, options, *phase.axis);
    Stop stop{phase.axis, make_lines(phase.shape, context)};
    alike_ = alike_ && stop.program->alike();
    PhaseShape empty = phase.shape;
    empty.size = Bytes(0);
    const auto latency = options.overlap_latency ? make_lines(empty, context) : nullptr;
    for (const std::uint64_t chunk : {0U, 1U}) {
      const Ps duration = work.stages[p].duration[chunk] = stop.program->duration(chunk);
      stop.latency[chunk] = work.stages[p].latency[chunk] = latency ? std::min(latency->duration(chunk), duration) : 0;
      stop.busy[chunk] = duration - stop.latency[chunk];
    }
    stops_.push_back(std::move(stop));
  }
  schedule_ = make_schedule(work, {options.queues, options.chunk_order});
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
    if (service.left != Service::none) workspace.starts.assign(times, times + n);
    stop.program->run(service.chunk, workspace.times, workspace.scratch);
    if (service.left != Service::none) {
      Ps* left = workspace.arrays.data() + service.left * n;
      const Ps latency = stop.latency[service.chunk % 2], busy = stop.busy[service.chunk % 2];
      for (std::size_t i = 0; i < n; ++i) left[members[i]] = std::max(workspace.starts[i] + busy, times[i] - latency);
    }
    Ps* finishes = workspace.arrays.data() + service.result * n;
    for (std::size_t i = 0; i < n; ++i) finishes[members[i]] = times[i];
    if (!service.is_last) continue;
    for (std::size_t i = 0; i < n; ++i) completions[i] = std::max(completions[i], finishes[i]);
  }
}

}  // namespace orrery::collective
