#include "orrery/synthesis/emit.hpp"

#include <algorithm>
#include <map>
#include <span>
#include <utility>

#include <fmt/format.h>

#include "events.hpp"
#include "expansion.hpp"
#include "orrery/base/error.hpp"
#include "orrery/base/mix.hpp"
#include "scaled.hpp"
#include "sizes.hpp"
#include "structures.hpp"

namespace orrery::synthesis {
namespace {

/// Returns how many layers more each role gets: [roles]. What does not go evenly into the stages goes to those in the
/// middle.
std::vector<std::int64_t> more_layers(const Model& model, const ScaledAxes& axes, const Scale& scale,
                                      std::uint32_t& total) {
  std::vector<std::int64_t> more(model.roles.size());
  std::vector<std::uint32_t> stages;
  std::uint32_t npu_limit = axes.num_npus;
  for (std::uint32_t npu = 0; npu < npu_limit; ++npu) {
    bool is_of_line = true;
    for (std::size_t a = 0; a < axes.axes.size(); ++a)
      if (!axes.axes[a].is_pipeline && axes.coordinate(npu, a) > 0) is_of_line = false;
    if (is_of_line) stages.push_back(axes.role_of(npu));
  }
  total = 0;
  for (const auto role : stages) total += model.roles[role].layers;
  if (!scale.layers || *scale.layers == total) return more;
  if (total == 0)
    throw Error(ErrorCode::bad_input, {.key = "--layers"}, "the traces have no loops over layers", "no --layers");
  const std::int64_t wanted = std::int64_t{*scale.layers} - total;
  const auto count = static_cast<std::int64_t>(stages.size());
  std::int64_t rest = ((wanted % count) + count) % count;
  const std::int64_t each = (wanted - rest) / count;
  std::vector<char> has_more(model.roles.size());
  for (std::int64_t i = 0; i < count; ++i) {
    // From the middle outwards.
    const std::int64_t distance = (i + 1) / 2, middle = (count - 1) / 2;
    const std::int64_t at = i % 2 == 0 ? middle - distance : middle + distance;
    const std::uint32_t role = stages[static_cast<std::size_t>(std::clamp<std::int64_t>(at, 0, count - 1))];
    if (rest > 0 && has_more[role] == 0) {
      has_more[role] = 1;
      --rest;
    }
  }
  for (std::size_t role = 0; role < more.size(); ++role) more[role] = each + has_more[role];
  // Roles off the first line have as many layers as those on it that had as many.
  std::map<std::uint32_t, std::int64_t> by_layers;
  for (const auto role : stages) by_layers[model.roles[role].layers] = more[role];
  for (std::uint32_t role = 0; role < more.size(); ++role)
    if (std::ranges::find(stages, role) == stages.end()) more[role] = by_layers[model.roles[role].layers];
  total = 0;
  for (const auto role : stages) total += static_cast<std::uint32_t>(model.roles[role].layers + more[role]);
  return more;
}

/// Gives NPUs their traces.
class Assembler {
 public:
  Assembler(const ScaledAxes& axes, trace::Store& store) : axes_(axes), store_(store) {}

  void keep(RoleStructure made, std::size_t role) {
    kept_.push_back({.groups = std::move(made.groups), .peers = std::move(made.peers)});
    kept_.back().trace = store_.keep(std::move(made.structure), fmt::format("synthesized traces, role {}", role));
  }

  trace::NpuTrace trace_of(std::uint32_t npu) {
    const Kept& kept = kept_[axes_.role_of(npu)];
    trace::NpuTrace trace = kept.trace;
    for (const GroupShape& shape : kept.groups) trace.groups.push_back(group(npu, shape));
    for (const Offsets& offsets : kept.peers) trace.peers.emplace_back(axes_.peer_of(npu, offsets));
    return trace;
  }

 private:
  struct Kept {
    trace::NpuTrace trace = {};
    std::vector<GroupShape> groups;
    std::vector<Offsets> peers;
  };

  GroupId group(std::uint32_t npu, const GroupShape& shape) {
    auto along = axes_.members_along(npu, shape);
    std::uint64_t size = 1;
    for (const auto& coordinates : along) size *= coordinates.size();
    const bool is_world = size == axes_.num_npus && shape.twin == 0;
    const auto [found, added] = groups_.try_emplace({std::move(along), shape.twin});
    if (added)
      found->second = is_world
                          ? store_.keep_group("", {})
                          : store_.keep_group(fmt::format("g{}", groups_.size()), axes_.npus_at(found->first.first));
    return found->second;
  }

  const ScaledAxes& axes_;
  trace::Store& store_;
  std::vector<Kept> kept_;
  std::map<std::pair<std::vector<std::vector<std::uint32_t>>, std::uint32_t>, GroupId> groups_;
};

}  // namespace

Emission emit(const Model& model, const Scale& scale, const Obfuscation& obfuscation, trace::Store& store) {
  const ScaledAxes axes = scale_axes(model, scale);
  Emission emission;
  EmitReport& report = emission.report;
  report.num_npus = axes.num_npus;
  report.micro_batches = scale.micro_batches.value_or(model.micro_batches);
  const auto more = more_layers(model, axes, scale, report.layers);
  const bool all_forward = runs_all_forward(model);
  std::vector<ScaledProgram> programs;
  for (std::size_t r = 0; r < model.roles.size(); ++r) {
    const auto sequence = scale_sequence(model.roles[r], model.micro_batches, report.micro_batches, all_forward);
    programs.push_back(expand(model.roles[r], sequence, more[r]));
    report.dropped_edges += programs.back().dropped_edges;
  }
  const Events events = match_events(model, axes, programs);
  const std::vector<Sizes> sizes = draw_sizes(model, axes, events, programs, scale.sizes, obfuscation);
  Assembler assembler(axes, store);
  for (std::size_t r = 0; r < programs.size(); ++r) {
    const auto of_role = std::span(sizes).subspan(events.first_node[r], programs[r].nodes.size());
    const double layers = model.roles[r].layers == 0 ? 1 : 1 + static_cast<double>(more[r]) / model.roles[r].layers;
    // What is there throughout is of all layers of the role.
    const auto tensor_size = [&](const HeldTensor& tensor) {
      return tensor_bytes(tensor, scale.sizes * (tensor.use.is_there() ? layers : 1), obfuscation);
    };
    assembler.keep(make_structure(model, programs[r], of_role, tensor_size, mix(obfuscation.seed, r)), r);
  }
  for (std::uint32_t npu = 0; npu < axes.num_npus; ++npu) {
    emission.traces.push_back(assembler.trace_of(npu));
    report.num_nodes += emission.traces.back().graph->num_nodes();
  }
  return emission;
}

}  // namespace orrery::synthesis
