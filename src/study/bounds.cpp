#include "orrery/study/bounds.hpp"

#include <algorithm>
#include <optional>
#include <vector>

#include "orrery/collective/kind.hpp"
#include "orrery/npu/program.hpp"
#include "orrery/workload/outline.hpp"

namespace orrery::study {

using trace::NodeKind;
using workload::OutlineGroup;
using workload::OutlinePass;
using workload::StageOutline;

std::vector<Time> least_times(const StageOutline& stage, const config::Configuration& configuration,
                              run::System& system) {
  const auto& graph = stage.structure.graph;
  const auto model = compute::make_model(configuration.execution.compute);
  struct Group {
    std::shared_ptr<const collective::GroupLayout> layout;
    std::uint32_t validated = 0;  // kinds, a bit each
  };
  std::vector<Group> groups(stage.groups.size());
  std::vector<Time> least(graph.num_nodes());
  for (std::uint32_t i = 0; i < graph.num_nodes(); ++i) {
    const auto& node = graph.nodes[i];
    if (node.kind == NodeKind::compute) least[i] = npu::duration_of(graph, NodeId(i), configuration.execution, *model);
    if (node.kind != NodeKind::collective) continue;
    const OutlineGroup& group = stage.groups[node.slot];
    if (group.role == OutlineGroup::Role::other) continue;
    auto& [layout, validated] = groups[node.slot];
    if (!layout) layout = system.engine.layout(group.members, collective::all_dimensions, {});
    const auto kind = collective::kind_of(node.collective);
    if (const std::uint32_t bit = 1U << static_cast<unsigned>(kind); (validated & bit) == 0) {
      system.engine.validate(*layout, kind);
      validated |= bit;
    }
    least[i] = system.engine.least_duration(*layout, kind, Bytes(node.size));
  }
  return least;
}

namespace {

/// The least times of a stage's nodes, and what follows for its passes and for what comes after them.
class StageTimes {
 public:
  StageTimes(const StageOutline& stage, const config::Configuration& configuration, run::System& system)
      : stage_(stage), least_(least_times(stage, configuration, system)) {}

  /// Returns the least time of nodes that follow each other.
  Time sum(const std::vector<NodeId>& chain) const {
    Time all;
    for (const NodeId node : chain) all += least_[node.index()];
    return all;
  }
  /// Returns the time of those of them that compute.
  Time sum_of_compute(const std::vector<NodeId>& chain) const {
    Time all;
    for (const NodeId node : chain)
      if (stage_.structure.graph.nodes[node.index()].kind == NodeKind::compute) all += least_[node.index()];
    return all;
  }
  /// Returns the FLOPs of all nodes, those before the update once for each micro-batch.
  double flops(std::uint32_t micro_batches) const {
    double all = 0;
    const auto& nodes = stage_.structure.graph.nodes;
    for (std::uint32_t i = 0; i < nodes.size(); ++i)
      if (nodes[i].kind == NodeKind::compute)
        all += static_cast<double>(nodes[i].detail) * (i < stage_.end_of_passes ? micro_batches : 1);
    return all;
  }
  /// Returns the least time of the collectives of a role that form a chain and repeat for each micro-batch: all that
  /// precede the update, with ZeRO 2 only the sums of gradients.
  Time repeated(OutlineGroup::Role role, bool only_sums) const {
    const auto& graph = stage_.structure.graph;
    Time all;
    for (std::uint32_t i = 0; i < stage_.end_of_passes; ++i)
      if (graph.nodes[i].kind == NodeKind::collective && stage_.groups[graph.nodes[i].slot].role == role &&
          (!only_sums || graph.nodes[i].collective == trace::CollectiveKind::reduce_scatter))
        all += least_[i];
    return all;
  }
  /// Returns the least time from the start of a node to the end of all that wait for it.
  Time from_start_of(NodeId first) const {
    const auto& graph = stage_.structure.graph;
    std::vector<std::optional<Time>> starts(graph.num_nodes());
    starts[first.index()] = Time::zero();
    Time longest;
    for (std::uint32_t i = first.value(); i < graph.num_nodes(); ++i) {
      if (!starts[i]) continue;
      const Time end = *starts[i] + least_[i];
      longest = std::max(longest, end);
      for (const std::uint32_t next : graph.successors_of(NodeId(i)))
        starts[next] = std::max(starts[next].value_or(Time::zero()), end);
    }
    return longest;
  }

 private:
  const StageOutline& stage_;
  std::vector<Time> least_;  ///< [nodes] 0 where nothing is known
};

/// Finds the bound of a step. Names are those of docs/exploration.md, *Bounds*.
class StepBound {
 public:
  StepBound(const config::Configuration& configuration, run::System& system)
      : parallel_(configuration.workload.generated->parallel),
        outline_(workload::outline(*configuration.workload.generated, configuration.workload.estimates.get())) {
    for (const StageOutline& outline : outline_.outlines) times_.emplace_back(outline, configuration, system);
    forward_.resize(outline_.stage_of.size());
    backward_.resize(outline_.stage_of.size());
    for (std::uint32_t p = 0; p < outline_.stages.size(); ++p)
      for (const OutlinePass& pass : outline_of(p).passes) {
        const Time least = times_of(p).sum(pass.chain);
        if (pass.kind == OutlinePass::Kind::forward) forward_[virtual_stage(p, pass)] = least;
        if (pass.kind == OutlinePass::Kind::backward) backward_[virtual_stage(p, pass)] = least;
      }
    add_messages(system);
  }

  /// Returns all bounds. Passes are a chain, so their computation is not done at the same time.
  StepBounds find_all() const {
    StepBounds bounds{find()};
    const auto num_stages = static_cast<double>(outline_.stages.size());
    for (std::uint32_t p = 0; p < outline_.stages.size(); ++p) {
      Time of_batch;
      for (const OutlinePass& pass : outline_of(p).passes) of_batch += times_of(p).sum_of_compute(pass.chain);
      bounds.compute += of_batch.seconds() * parallel_.micro_batches / num_stages;
      bounds.flops_of_npu += times_of(p).flops(parallel_.micro_batches) / num_stages;
    }
    return bounds;
  }
  /// Returns the bound of the time; 0 if it does not fit Time.
  Time find() const {
    std::vector<Time> ends(outline_.stages.size());  // of all passes of a stage
    for (std::uint32_t p = 0; p < outline_.stages.size(); ++p) {
      const Time end = start_of(p) + time_of_passes(p);
      ends[p] = std::max(ends[p], end);
      const OutlinePass& last = outline_.stages[p].last;
      if (last.kind == OutlinePass::Kind::backward) drain(virtual_stage(p, last), end, ends);
    }
    drain(forward_.size() - 1, end_of_forward(forward_.size()) + backward_.back(), ends);
    Time bound;
    for (std::uint32_t p = 0; p < outline_.stages.size(); ++p)
      bound = std::max({bound, ends[p] == Time::max() ? ends[p] : after_passes(p, ends[p]), time_of_copies(p)});
    return bound == Time::max() ? Time::zero() : bound;
  }

 private:
  const StageOutline& outline_of(std::uint32_t p) const { return outline_.outlines[outline_.stages[p].outline]; }
  const StageTimes& times_of(std::uint32_t p) const { return times_[outline_.stages[p].outline]; }
  std::uint32_t virtual_stage(std::uint32_t p, const OutlinePass& pass) const {
    return parallel_.virtual_stage(p, pass.chunk);
  }

  /// Returns when the first micro-batch has passed so many virtual stages at the earliest, and is at the next one.
  Time end_of_forward(std::size_t virtual_stages) const {
    const std::uint32_t first = outline_.stage_of.front();
    Time at = times_of(first).sum(outline_of(first).before);
    for (std::size_t i = 0; i < virtual_stages; ++i) at += forward_[i] + (i < there_.size() ? there_[i] : Time::zero());
    return at;
  }
  /// Returns when the first pass of a stage begins at the earliest.
  Time start_of(std::uint32_t p) const { return end_of_forward(virtual_stage(p, outline_.stages[p].first)); }
  /// Returns the least time of all passes of a stage.
  Time time_of_passes(std::uint32_t p) const {
    Time of_batch;
    for (const OutlinePass& pass : outline_of(p).passes) of_batch += times_of(p).sum(pass.chain);
    return of_batch * parallel_.micro_batches;
  }
  /// Lets gradients go from the backward pass of a virtual stage, which ends at `end`, to the stages before it.
  void drain(std::size_t from, Time end, std::vector<Time>& ends) const {
    for (std::size_t i = from; i-- > 0;) {
      end += back_[i] + backward_[i];
      Time& of_stage = ends[outline_.stage_of[i]];
      of_stage = std::max(of_stage, end);
    }
  }
  /// Returns the end of all that waits for the last pass, which ends at `end` at the earliest.
  Time after_passes(std::uint32_t p, Time end) const {
    const OutlinePass& last = outline_of(p).passes.back();
    const OutlinePass& last_of_step = outline_.stages[p].last;
    if (last.chain.empty() || last.kind != last_of_step.kind || last.chunk != last_of_step.chunk) return end;
    return end - times_of(p).sum(last.chain) + times_of(p).from_start_of(last.chain.front());
  }
  /// Returns the bound that collectives among copies give, which repeat for each micro-batch with ZeRO 2 and 3.
  Time time_of_copies(std::uint32_t p) const {
    using Role = OutlineGroup::Role;
    if (parallel_.sharding.zero < 2) return Time::zero();
    const auto chain = [&](Role role) {
      return times_of(p).repeated(role, parallel_.sharding.zero == 2) * parallel_.micro_batches;
    };
    return std::max(chain(Role::copies), start_of(p) + chain(Role::sums));
  }

  void add_messages(run::System& system) {
    for (std::size_t i = 0; i + 1 < outline_.stage_of.size(); ++i) {
      const std::uint32_t here = outline_.stage_of[i], next = outline_.stage_of[i + 1];
      const NpuId a = outline_.stages[here].first_npu, b = outline_.stages[next].first_npu;
      const Bytes bytes(outline_.handed[i]);
      there_.push_back(here == next ? Time::zero() : system.delays.delay(a, b, bytes));
      back_.push_back(here == next ? Time::zero() : system.delays.delay(b, a, bytes));
    }
  }

  const workload::Parallel& parallel_;
  workload::Outline outline_;
  std::vector<StageTimes> times_;         ///< [outlines]
  std::vector<Time> forward_, backward_;  ///< [virtual stages] least times of passes
  std::vector<Time> there_, back_;        ///< [virtual stages - 1] least times of messages
};

}  // namespace

bool has_time_bound(const config::Configuration& configuration) {
  const auto& execution = configuration.execution;
  if (!configuration.workload.generated || !workload::has_outline(*configuration.workload.generated)) return false;
  if (configuration.rule_set != config::RuleSet::physical || execution.iterations != 1 || execution.replay_only ||
      execution.goes_over_links() || execution.network.circuits || execution.noise.amplitude > 0 ||
      !execution.noise.variations.all().empty() || !execution.compute_speed.empty() ||
      !configuration.perturbation.empty())
    return false;
  std::vector<std::uint32_t> sizes;
  for (const auto& dimension : configuration.dimensions) {
    if (dimension.shape->symmetry == topology::HopSymmetry::none) return false;
    sizes.push_back(dimension.size);
  }
  return workload::groups_are_alike(configuration.workload.generated->parallel, sizes);
}

StepBounds bounds_of_step(const config::Configuration& configuration, run::System& system) {
  return has_time_bound(configuration) ? StepBound(configuration, system).find_all() : StepBounds();
}

Time least_step_time(const config::Configuration& configuration, run::System& system) {
  return has_time_bound(configuration) ? StepBound(configuration, system).find() : Time::zero();
}

Bytes least_peak_memory(const config::Configuration& configuration) {
  const auto& generated = configuration.workload.generated;
  return generated && workload::has_outline(*generated) ? Bytes(workload::least_peak_memory(*generated)) : Bytes();
}

}  // namespace orrery::study
