#include "plan.hpp"

#include <algorithm>
#include <array>
#include <map>

#include "orrery/collective/registry.hpp"
#include "validation.hpp"

namespace orrery::collective {
namespace {

/// Returns the axis whose queues serve the chunks of a phase: dimensions that contend for a port have the queues of the
/// lowest one of the route.
std::uint32_t serving_axis(const topology::Topology& topology, const Route& route, const Phase& phase) {
  std::uint64_t contending = 0;
  for (const std::uint32_t d : phase.axis->dimensions) contending |= topology.ports().contending(std::uint64_t{1} << d);
  std::uint32_t lowest = phase.axis_idx;
  for (const Phase& other : route)
    for (const std::uint32_t d : other.axis->dimensions)
      if ((contending >> d & 1U) != 0) lowest = std::min(lowest, other.axis_idx);
  return lowest;
}

/// Returns the stages of a route. With several queues the way up of an all-reduce takes turns in the first half of
/// them, its way down in the second half; everything else takes turns in all queues.
std::vector<ChunkStage> stages_of(const network::DelayModel& delays, const Options& options, Kind kind,
                                  const Route& route) {
  const bool halves = kind == Kind::all_reduce && options.chunks.optimization == Optimization::local_bw_aware;
  const std::uint32_t q = options.chunks.queues;
  std::vector<ChunkStage> stages;
  for (const Phase& phase : route) {
    ChunkStage stage;
    stage.axis = serving_axis(delays.topology(), route, phase);
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

/// Returns by how many chunks the bandwidth is shared in each axis (docs/collectives.md, Chunks and dimensions); 1
/// where the rules do not share it.
std::vector<std::uint64_t> chunks_that_share(const Rules& rules, const std::vector<ChunkStage>& stages,
                                             std::uint64_t num_chunks) {
  std::vector<std::map<std::uint32_t, std::uint64_t>> slots;  // [axes] of each queue
  for (const ChunkStage& stage : stages) {
    if (slots.size() <= stage.axis) slots.resize(stage.axis + 1);
    for (std::uint32_t q = 0; q < stage.num_queues; ++q) slots[stage.axis][stage.first_queue + q] = stage.in_service;
  }
  std::vector<std::uint64_t> result;
  for (const auto& queues : slots) {
    std::uint64_t count = 0;
    for (const auto& [queue, of_queue] : queues) count += of_queue;
    result.push_back(rules.share_bandwidth ? std::min(num_chunks, count) : 1);
  }
  return result;
}

/// Returns by how many collectives the bandwidth is shared too.
std::uint32_t collectives_that_share(const Options& options, std::uint32_t sharing, const Axis& axis) {
  std::uint32_t most = 1;
  if (!options.sharing.sharers.empty() && options.rules.share_bandwidth)
    for (const std::uint32_t d : axis.dimensions) most = std::max(most, options.sharing.sharers[sharing][d]);
  return most;
}

/// Returns what the schedule serves. `phases`: appended, one for each stage.
ChunkWork work_of(const network::DelayModel& delays, const Options& options, Kind kind, const Routes& routes,
                  std::vector<const Phase*>& phases) {
  ChunkWork work;
  work.route_of = routes.of_chunk;
  for (const Route& route : routes.routes) {
    const std::vector<ChunkStage> stages =
        stages_of(delays, options, goes_whole(options, kind) ? kind : parent(kind), route);
    work.routes.push_back({static_cast<std::uint32_t>(work.stages.size()), static_cast<std::uint32_t>(stages.size())});
    work.stages.insert(work.stages.end(), stages.begin(), stages.end());
    for (const Phase& phase : route) phases.push_back(&phase);
  }
  return work;
}

/// Returns whether all times have moved on by the same.
bool is_shifted(std::span<const Ps> since, std::span<const Ps> times) {
  for (std::size_t i = 1; i < times.size(); ++i)
    if (times[i] - since[i] != times[0] - since[0]) return false;
  return true;
}

}  // namespace

std::uint64_t in_service(const network::DelayModel& delays, const Options& options, const Phase& phase) {
  const std::uint32_t queues = options.chunks.queues;
  const std::uint64_t slots = (std::uint64_t{options.chunks.active_chunks} + queues - 1) / queues;
  if (phase.shape.is_custom || !entry_of(phase.shape.algorithm).is_in_switch) return slots;
  return std::min(slots, switch_operations(delays.topology(), options, *phase.axis) / queues);
}

Plan::Plan(const network::DelayModel& delays, const Options& options, const GroupLayout& layout, Kind kind, Bytes size,
           Turn turn) {
  const Chunks chunks = cut(options, kind, size, delays.topology().num_npus(), layout.num_members);
  const Routes routes = routes_of(delays, options, layout, kind, chunks, turn);
  std::vector<const Phase*> phases;
  ChunkWork work = work_of(delays, options, kind, routes, phases);
  work.num_chunks = chunks.count;
  const std::vector<std::uint64_t> shares = chunks_that_share(options.rules, work.stages, chunks.count);
  for (std::size_t p = 0; p < phases.size(); ++p) {
    const Phase& phase = *phases[p];
    GroupContext context = group_context(delays, options, layout, *phase.axis);
    context.share = shares[work.stages[p].axis] * collectives_that_share(options, layout.sharing, *phase.axis);
    const auto evaluators_of = [&](const PhaseShape& shape) {
      return make_algorithms(shape, phase.axis->size, options.rules).map([&](const PhaseAlgorithm& algorithm) {
        return evaluate_groups(algorithm, context);
      });
    };
    PlannedPhase planned{phase.axis, evaluators_of(phase.shape)};
    PhaseShape empty = phase.shape;
    empty.size = Bytes(0);
    ForChunks<std::unique_ptr<GroupEvaluator>> latencies;
    if (options.chunks.overlap_latency) latencies = evaluators_of(empty);
    for (const std::uint64_t chunk : {0U, 1U}) {
      const GroupEvaluator& evaluator = planned.evaluators.of(chunk);
      completes_together_ = completes_together_ && evaluator.finishes_together();
      const Ps duration = work.stages[p].duration[chunk] = evaluator.duration();
      const Ps latency = latencies.even ? std::min(latencies.of(chunk).duration(), duration) : 0;
      planned.latency[chunk] = work.stages[p].latency[chunk] = latency;
      planned.busy[chunk] = duration - latency;
    }
    phases_.push_back(std::move(planned));
  }
  schedule_ = make_schedule(work, {options.chunks.queues, options.chunks.chunk_order});
  is_chain_ = is_chain();
  shortest_ = find_shortest();
  if (options.rules.turns_go_on && !options.chunks.overlap_latency && !is_chain_)
    give_slots(work, options.chunks.chunk_order);
}

/// Returns when the collective ends at the earliest if each service takes its shortest time; none if no service may
/// take less because a member comes late.
std::optional<Ps> Plan::find_shortest() const {
  if (std::ranges::none_of(phases_, [](const PlannedPhase& phase) {
        return phase.evaluators.of(0).shortest() || phase.evaluators.of(1).shortest();
      }))
    return {};
  std::vector<std::array<Ps, 2>> takes;  // [stages] of even and odd chunks
  for (const PlannedPhase& phase : phases_) {
    const std::size_t num_members = phase.axis->members.size();
    takes.push_back(
        {shortest_of(phase.evaluators.of(0), num_members), shortest_of(phase.evaluators.of(1), num_members)});
  }
  std::vector<Ps> times(schedule_.num_arrays);
  Ps end = 0;
  for (const ScheduledService& service : schedule_.services) {
    Ps start = 0;
    for (const std::uint32_t since : {service.previous, service.predecessor})
      if (since != ScheduledService::none) start = std::max(start, times[since]);
    if (service.left != ScheduledService::none) times[service.left] = start;
    times[service.result] = plus(start, takes[service.stage][service.chunk % 2]);
    end = std::max(end, times[service.result]);
  }
  return end;
}

std::size_t Plan::memory() const {
  std::size_t bytes = sizeof(Plan) + schedule_.services.size() * sizeof(ScheduledService);
  for (const PlannedPhase& phase : phases_)
    bytes +=
        sizeof(phase) + phase.evaluators.even->memory() + (phase.evaluators.odd ? phase.evaluators.odd->memory() : 0);
  if (own_order_) bytes += own_order_->memory();
  return bytes + own_slots_.size() * sizeof(std::uint64_t);
}

bool Plan::is_chain() const {
  if (phases_.size() != 1 || phases_[0].evaluators.odd) return false;
  const std::vector<ScheduledService>& services = schedule_.services;
  for (std::size_t k = 0; k < services.size(); ++k) {
    const std::uint32_t since = k == 0 ? ScheduledService::none : services[k - 1].result;
    const ScheduledService& service = services[k];
    if (service.predecessor != since || service.previous != ScheduledService::none ||
        service.left != ScheduledService::none)
      return false;
  }
  return true;
}

/// Evaluates chunks until one, or two in a row, move all members on by the same time. Then those that follow do so by
/// the same time again, because a shift of all starts shifts all finishes. Two in a row do so where members that a late
/// one delays delay it in turn.
void Plan::run_chain(std::span<const Ps> arrivals, std::span<Ps> completions, Workspace& workspace) const {
  const std::size_t n = arrivals.size();
  const std::uint32_t* members = phases_[0].axis->members.data();
  std::vector<Ps>& times = workspace.times;
  times.resize(n);
  for (std::size_t i = 0; i < n; ++i) times[i] = arrivals[members[i]];
  std::size_t left = schedule_.services.size();
  const auto evaluate_one = [&] {
    workspace.before.swap(workspace.starts);
    workspace.starts.assign(times.begin(), times.end());
    phases_[0].evaluators.of(0).run(times, workspace.scratch);
    --left;
  };
  std::size_t period = 0;
  for (std::size_t done = 1; left > 0 && period == 0; ++done) {
    evaluate_one();
    if (is_shifted(workspace.starts, times))
      period = 1;
    else if (done >= 2 && is_shifted(workspace.before, times))
      period = 2;
  }
  Ps rest = 0;
  if (period > 0) {
    const std::vector<Ps>& since = period == 1 ? workspace.starts : workspace.before;
    rest = (times[0] - since[0]) * static_cast<Ps>(left / period);
    left %= period;
  }
  while (left > 0) evaluate_one();
  for (std::size_t i = 0; i < n; ++i) completions[members[i]] = times[i] + rest;
}

void Plan::give_slots(const ChunkWork& work, ChunkOrder order) {
  for (const ScheduledService& service : schedule_.services) {
    own_slots_.resize(std::max<std::size_t>(own_slots_.size(), service.queue + 1));
    own_slots_[service.queue] = std::min<std::uint64_t>(work.stages[service.stage].in_service, work.num_chunks);
  }
  const auto has_alike_groups = [](const PlannedPhase& phase) {
    return phase.axis->ports.empty() && phase.axis->npus.empty();
  };
  if (phases_.size() == 1 || work.num_chunks == 1 || order != ChunkOrder::fifo ||
      !std::ranges::all_of(phases_, has_alike_groups))
    return;
  std::vector<MemberStage> stages;
  for (const PlannedPhase& phase : phases_)
    stages.push_back({{&phase.evaluators.of(0), &phase.evaluators.of(1)}, phase.axis->members, phase.axis->size});
  own_order_.emplace(schedule_, std::move(stages), own_slots_);
}

void Plan::run_by_slots(std::span<const Ps> arrivals, std::span<Ps> completions, Workspace& workspace) const {
  const std::size_t n = arrivals.size();
  std::vector<std::size_t> taken(n);
  workspace.arrays.resize(schedule_.num_arrays * n);
  workspace.slots.resize(own_slots_.size());
  for (std::size_t q = 0; q < own_slots_.size(); ++q) {
    workspace.slots[q].clear();
    for (std::uint64_t slot = 0; slot < own_slots_[q]; ++slot)
      workspace.slots[q].insert(workspace.slots[q].end(), arrivals.begin(), arrivals.end());
  }
  workspace.times.resize(n);
  std::ranges::copy(arrivals, completions.begin());
  for (const ScheduledService& service : schedule_.services) {
    const PlannedPhase& phase = phases_[service.stage];
    const std::vector<std::uint32_t>& members = phase.axis->members;
    const Ps* const ready =
        service.previous == ScheduledService::none ? arrivals.data() : workspace.arrays.data() + service.previous * n;
    std::vector<Ps>& free = workspace.slots[service.queue];
    for (std::size_t i = 0; i < n; ++i) {
      taken[i] = members[i];
      for (std::size_t slot = members[i] + n; slot < free.size(); slot += n)
        if (free[slot] < free[taken[i]]) taken[i] = slot;
      workspace.times[i] = std::max(ready[members[i]], free[taken[i]]);
    }
    phase.evaluators.of(service.chunk).run(workspace.times, workspace.scratch);
    Ps* const finishes = workspace.arrays.data() + service.result * n;
    for (std::size_t i = 0; i < n; ++i) {
      finishes[members[i]] = free[taken[i]] = workspace.times[i];
      if (!service.is_last) continue;
      Ps& completion = completions[members[i]];
      completion = std::max(completion, workspace.times[i]);
    }
  }
}

void Plan::run(std::span<const Ps> arrivals, std::span<Ps> completions, Workspace& workspace) const {
  if (own_order_ && own_order_->run(schedule_, arrivals, completions)) return;
  if (!own_slots_.empty()) return run_by_slots(arrivals, completions, workspace);
  if (is_chain_) return run_chain(arrivals, completions, workspace);
  const std::size_t n = arrivals.size();
  workspace.arrays.resize(schedule_.num_arrays * n);
  workspace.times.resize(n);
  std::ranges::copy(arrivals, completions.begin());
  for (const ScheduledService& service : schedule_.services) {
    const PlannedPhase& phase = phases_[service.stage];
    const std::uint32_t* members = phase.axis->members.data();
    Ps* times = workspace.times.data();
    const Ps* starts =
        service.previous == ScheduledService::none ? arrivals.data() : workspace.arrays.data() + service.previous * n;
    const bool in_order = phase.axis->in_order;
    if (in_order && service.predecessor == ScheduledService::none) {
      std::copy(starts, starts + n, times);
    } else if (in_order) {
      const Ps* held = workspace.arrays.data() + service.predecessor * n;
      for (std::size_t i = 0; i < n; ++i) times[i] = std::max(starts[i], held[i]);
    } else if (service.predecessor == ScheduledService::none) {
      for (std::size_t i = 0; i < n; ++i) times[i] = starts[members[i]];
    } else {
      const Ps* held = workspace.arrays.data() + service.predecessor * n;
      for (std::size_t i = 0; i < n; ++i) times[i] = std::max(starts[members[i]], held[members[i]]);
    }
    if (service.left != ScheduledService::none) workspace.starts.assign(times, times + n);
    phase.evaluators.of(service.chunk).run(workspace.times, workspace.scratch);
    if (service.left != ScheduledService::none) {
      Ps* left = workspace.arrays.data() + service.left * n;
      const Ps latency = phase.latency[service.chunk % 2], busy = phase.busy[service.chunk % 2];
      for (std::size_t i = 0; i < n; ++i) left[members[i]] = std::max(workspace.starts[i] + busy, times[i] - latency);
    }
    Ps* finishes = workspace.arrays.data() + service.result * n;
    if (in_order)
      std::copy(times, times + n, finishes);
    else
      for (std::size_t i = 0; i < n; ++i) finishes[members[i]] = times[i];
    if (!service.is_last) continue;
    for (std::size_t i = 0; i < n; ++i) completions[i] = std::max(completions[i], finishes[i]);
  }
}

}  // namespace orrery::collective
