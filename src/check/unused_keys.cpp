#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <span>
#include <string_view>
#include <vector>

#include "orrery/base/text.hpp"
#include "orrery/collective/options.hpp"
#include "orrery/npu/recorded.hpp"
#include "orrery/topology/circuits.hpp"
#include "preflight.hpp"

namespace orrery::check {
namespace {

bool is_communication(const trace::Node& node) {
  return node.kind == trace::NodeKind::collective || node.kind == trace::NodeKind::send ||
         node.kind == trace::NodeKind::receive;
}

bool is_of_experts(const trace::Node& node) {
  return node.kind == trace::NodeKind::collective && collective::is_of_experts(collective::kind_of(node.collective));
}

/// Returns the keys of exchanges of tokens that were given.
std::vector<std::string_view> expert_keys_of(const config::Configuration& configuration) {
  std::vector<std::string_view> keys;
  for (const auto& [key, place] : configuration.places)
    if (key.starts_with("system.collectives.experts.")) keys.emplace_back(key);
  return keys;
}

/// Names the keys of system.network.circuits.groups that stand for no group. Collective.
void note_groups_of_circuits(const Subject& subject, parallel::Communicator& world, Findings findings) {
  const auto& circuits = subject.configuration.execution.network.circuits;
  if (!circuits) return;
  std::map<std::string_view, std::int64_t> uses;
  for (const auto& [key, configuration] : circuits->options().groups) uses[key] = 0;
  for (const auto& npu : subject.run.npus)
    for (const GroupId group : npu.groups) {
      const auto found = uses.find(circuits->key_of_group(subject.run.communicators[group.index()].group->name));
      if (found != uses.end()) ++found->second;
    }
  std::vector<std::int64_t> counts;
  for (const auto& [key, count] : uses) counts.push_back(count);
  if (!counts.empty()) world.sum(std::span(counts));
  for (std::size_t i = 0; const auto& [key, count] : uses)
    if (counts[i++] == 0 && world.is_root())
      findings.notices.add(fmt::format("circuits-{}", key),
                           fmt::format("system.network.circuits.groups.{} has no effect: no group has this name or "
                                       "begins with it",
                                       cited(key)));
}

/// Names groups whose members circuits do not join in the configuration of the group (O5). Collective.
void require_circuits_of_groups(const Subject& subject, parallel::Communicator& world, Findings findings) {
  const auto& circuits = subject.configuration.execution.network.circuits;
  if (!circuits || !world.is_root()) return;
  for (const auto& communicator : subject.run.communicators) {
    const trace::Group& group = *communicator.group;
    const std::uint32_t configuration = circuits->of_group(group.name);
    if (!circuits->lists_circuits(configuration)) continue;
    std::vector<NpuId> members = group.members;
    for (std::uint32_t npu = 0; group.members.empty() && npu < circuits->num_npus(); ++npu) members.emplace_back(npu);
    for (const NpuId from : members)
      for (const NpuId to : members) {
        if (from == to || circuits->next_npu(configuration, from, to) != from) continue;
        findings.faults.add(
            Error(ErrorCode::bad_input, {.key = fmt::format("system.network.circuits.{}", configuration)},
                  fmt::format("NPU {} cannot reach NPU {} in configuration {}, but group {} needs it", from.value(),
                              to.value(), cited(circuits->options().configurations[configuration].name),
                              group.name.empty() ? "all" : cited(group.name)),
                  "circuits that join them"));
        return;
      }
  }
}

/// Whether traces, unlike what is generated, have what a key acts on shows only when they are read. Collective.
void note_keys_of_traces(const Subject& subject, parallel::Communicator& world, Findings findings) {
  const auto workloads = subject.configuration.workloads();
  if (std::ranges::any_of(workloads, [](const auto* each) { return each->generated.has_value(); })) return;
  const npu::Options& options = subject.run.options;
  const bool wants_recorded = options.recorded_communication && !options.replay_only;
  const auto expert_keys = expert_keys_of(subject.configuration);
  if (!wants_recorded && expert_keys.empty()) return;
  std::array<std::int64_t, 3> found{};  // communication, that with a recorded duration, exchanges of experts
  std::set<const trace::Graph*> known;
  for (const auto& npu : subject.run.npus) {
    const trace::Graph& graph = *npu.program->graph;
    if (!known.insert(&graph).second) continue;
    for (std::uint32_t i = 0; i < graph.num_nodes(); ++i) {
      if (!is_communication(graph.nodes[i])) continue;
      ++found[0];
      found[1] += wants_recorded && npu::recorded_cost(graph, NodeId(i), options) > Time::zero() ? 1 : 0;
      found[2] += is_of_experts(graph.nodes[i]) ? 1 : 0;
    }
  }
  world.sum(std::span(found));
  if (!world.is_root()) return;
  if (wants_recorded && found[0] > 0 && found[1] == 0)
    findings.notices.add("recorded-communication",
                         "system.communication.durations: recorded has no effect: no collective or message of the "
                         "traces has a recorded duration");
  if (!expert_keys.empty() && found[2] == 0)
    findings.notices.add("experts", fmt::format("no effect of {}: the traces hold no exchange of tokens with experts",
                                                fmt::join(expert_keys, ", ")));
}

}  // namespace

Check unused_keys() {
  return {"unused-keys", "warning: the configuration sets what nothing in the traces depends on",
          Check::Collective([](const Subject& subject, parallel::Communicator& world, Findings findings) {
            note_keys_of_traces(subject, world, findings);
            note_groups_of_circuits(subject, world, findings);
            require_circuits_of_groups(subject, world, findings);
          })};
}

}  // namespace orrery::check
