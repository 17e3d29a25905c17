#include "orrery/workload/generator.hpp"

#include <fmt/format.h>

#include <map>

#include "estimates.hpp"
#include "inference.hpp"
#include "layer.hpp"
#include "orrery/base/error.hpp"
#include "orrery/trace/writer.hpp"
#include "placement.hpp"
#include "step.hpp"

namespace orrery::workload {
namespace {

/// Makes the structure of each stage once, and the tables of each NPU.
class Assembler {
 public:
  Assembler(const Description& description, trace::Store& store, const compute::ComputeModel* estimates)
      : model_(description.model),
        parallel_(description.parallel),
        store_(store),
        placement_(parallel_),
        kinds_(kinds_of_npus(description)),
        description_(description),
        estimates_(estimates) {}

  trace::NpuTrace trace_of(NpuId npu) {
    const StageTrace& made =
        stage_trace({placement_.stage(npu), start_of(model_, npu, parallel_.num_npus()), part_of(npu)});
    trace::NpuTrace trace = made.trace;
    trace.groups.reserve(made.groups.size());
    for (const auto kind : made.groups) trace.groups.push_back(group(static_cast<GroupKind>(kind), npu));
    trace.peers.reserve(made.peers.size());
    for (const auto peer : made.peers) trace.peers.push_back(placement_.in_stage(npu, peer));
    return trace;
  }

 private:
  /// Returns the part of experts or tables by which the layers of an NPU differ from those of others.
  std::uint32_t part_of(NpuId npu) const {
    if (!kinds_.empty()) return kinds_[npu.value()];
    return parallel_.experts.imbalance > 0 ? placement_.expert_rank(npu) : 0;
  }

  /// The layers of the model as NPUs execute them that have one part, and those of each virtual stage.
  struct AssignedLayers {
    std::vector<Layer> layers;
    std::vector<std::span<const Layer>> assigned;
  };

  std::vector<Layer> estimated(const Description& description, std::uint32_t part) const {
    auto layers = make_layers(description, part);
    if (estimates_ != nullptr) estimate(layers, *estimates_);
    return layers;
  }

  const AssignedLayers& layers_of(std::uint32_t part) {
    const auto [found, added] = layers_.try_emplace(part);
    AssignedLayers& made = found->second;
    if (added) {
      made.layers = estimated(description_, part);
      made.assigned = assign_layers(made.layers, parallel_);
    }
    return made;
  }

  struct StageTrace {
    trace::NpuTrace trace;  ///< without groups and peers
    std::vector<std::uint32_t> groups, peers;
  };

  /// What tells the structures of NPUs apart.
  struct Kind {
    std::uint32_t stage = 0;
    Time start = {};
    std::uint32_t part = 0;

    friend auto operator<=>(const Kind&, const Kind&) = default;
  };

  const StageTrace& stage_trace(const Kind& kind) {
    const auto [found, added] = stages_.try_emplace(kind);
    StageTrace& made = found->second;
    if (added) {
      const std::uint32_t stage = kind.stage;
      auto structure = parallel_.pipeline.phase == Phase::request
                           ? request_of_stage(description_, stage, kind.start,
                                              [&](std::uint64_t token) {
                                                return estimated(step_of_token(description_, token), kind.part);
                                              })
                           : step_of_stage(parallel_, layers_of(kind.part).assigned, stage, kind.start);
      made.groups = std::move(structure.groups);
      made.peers = std::move(structure.peers);
      made.trace = store_.keep(std::move(structure), fmt::format("generated workload, stage {}", stage));
    }
    return made;
  }

  GroupId group(GroupKind kind, NpuId npu) {
    const auto [entry, added] = groups_.try_emplace({kind, placement_.first_member(kind, npu)});
    if (added) entry->second = store_.keep_group(placement_.group_name(kind, npu), placement_.members(kind, npu));
    return entry->second;
  }

  const Model& model_;
  const Parallel& parallel_;
  trace::Store& store_;
  Placement placement_;
  std::vector<std::uint32_t> kinds_;  ///< [npus] which tables an NPU has; or empty
  const Description& description_;
  const compute::ComputeModel* estimates_;
  std::map<std::uint32_t, AssignedLayers> layers_;  ///< layers by part; one part if all NPUs are equal
  std::map<Kind, StageTrace> stages_;
  std::map<std::pair<GroupKind, NpuId>, GroupId> groups_;
};

}  // namespace

std::vector<trace::NpuTrace> assemble(const Description& description, std::span<const NpuId> npus, trace::Store& store,
                                      const compute::ComputeModel* estimates) {
  description.validate();
  Assembler assembler(description, store, estimates);
  std::vector<trace::NpuTrace> traces;
  traces.reserve(npus.size());
  for (const NpuId npu : npus) traces.push_back(assembler.trace_of(npu));
  return traces;
}

std::vector<std::string> doubts(const Description& description, const compute::ComputeModel& estimates) {
  description.validate();
  std::vector<Layer> layers;
  const auto add = [&](const Description& step) {
    const auto more = make_layers(step);
    layers.insert(layers.end(), more.begin(), more.end());
  };
  const bool is_request = description.parallel.pipeline.phase == Phase::request;
  add(is_request ? step_of_token(description, 1) : description);
  if (is_request) add(step_of_token(description, 2));
  return doubts_of(layers, estimates);
}

void write_traces(const Description& description, const std::filesystem::path& prefix, bool force,
                  const compute::ComputeModel* estimates, std::string_view precision) {
  const std::uint32_t num_npus = description.parallel.num_npus();
  trace::Store store({.num_npus = num_npus, .precision = std::string(precision)}, {});
  std::vector<NpuId> npus;
  for (std::uint32_t i = 0; i < num_npus; ++i) npus.emplace_back(i);
  const auto traces = assemble(description, npus, store, estimates);
  trace::write_traces(store, traces, prefix, force);
}

}  // namespace orrery::workload
