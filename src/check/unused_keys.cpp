#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>
#include <span>
#include <string_view>
#include <vector>

#include "orrery/collective/options.hpp"
#include "orrery/npu/recorded.hpp"
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

/// Whether traces, unlike what is generated, have what a key acts on shows only when they are read. Collective.
void note_unused_keys(const Subject& subject, parallel::Communicator& world, Findings findings) {
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
          Check::Collective(note_unused_keys)};
}

}  // namespace orrery::check
