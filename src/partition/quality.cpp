#include "orrery/partition/quality.hpp"

#include <algorithm>
#include <memory>
#include <numeric>
#include <set>
#include <utility>
#include <vector>

#include "orrery/collective/kind.hpp"
#include "orrery/npu/recorded.hpp"

namespace orrery::partition {
namespace {

/// The least delay of messages and of collectives whose NPUs are on different ranks.
class Lookahead {
 public:
  void at_most(Time delay) { least_ = std::min(least_, delay); }
  std::optional<Time> value() const { return least_ == Time::max() ? std::nullopt : std::optional(least_); }

 private:
  Time least_ = Time::max();
};

bool is_cut(std::span<const NpuId> members, const Partition& partition) {
  return std::any_of(members.begin(), members.end(),
                     [&](NpuId npu) { return partition.rank_of(npu) != partition.rank_of(members.front()); });
}

/// Takes in the shortest collective of the communicators marked in `is_cut`.
void take_in_collectives(const npu::RunContext& run, const std::vector<bool>& is_cut, Lookahead& lookahead) {
  std::set<std::pair<const npu::Program*, GroupId>> done;  // NPUs of one program and group do the same
  for (const auto& npu : run.npus) {
    const auto& graph = *npu.program->graph;
    std::vector<std::shared_ptr<const collective::GroupLayout>> layouts(npu.groups.size());
    for (std::size_t use = 0; use < npu.groups.size(); ++use) {
      const auto& spec = run.communicators[npu.groups[use].index()];
      if (!is_cut[spec.id.index()] || !done.emplace(npu.program, spec.id).second) continue;
      layouts[use] = collective::layout_of(run.engine, *spec.group, spec.dimensions, spec.custom);
    }
    if (std::none_of(layouts.begin(), layouts.end(), [](const auto& layout) { return layout != nullptr; })) continue;
    for (std::uint32_t i = 0; i < graph.num_nodes(); ++i) {
      const auto& node = graph.nodes[i];
      if (node.kind != trace::NodeKind::collective) continue;
      const auto& layout = layouts[npu.program->use_of_node(NodeId(i))];
      if (layout)
        lookahead.at_most(run.engine.least_duration(*layout, collective::kind_of(node.collective), Bytes(node.size)));
    }
  }
}

/// Takes in the accesses to memory servers whose NPUs are on several ranks.
void take_in_memory(const npu::RunContext& run, const Partition& partition, Lookahead& lookahead) {
  const auto& memory = run.memory;
  for (std::uint32_t server = 0; server < memory.num_servers(); ++server)
    for (std::uint32_t i = 1; i < memory.npus_per_server(); ++i) {
      const NpuId first = memory.first_npu_of(server);
      if (partition.rank_of(first) != partition.rank_of(NpuId(first.value() + i)))
        lookahead.at_most(memory.service_delay());
    }
}

}  // namespace

double balance(std::span<const std::uint64_t> loads, const Partition& partition) {
  std::vector<double> of_rank(static_cast<std::size_t>(partition.num_ranks()));
  for (std::size_t i = 0; i < loads.size(); ++i)
    of_rank[partition.rank_of(NpuId(static_cast<std::uint32_t>(i))).index()] += static_cast<double>(loads[i]);
  const double sum = std::accumulate(of_rank.begin(), of_rank.end(), 0.0);
  if (sum <= 0) return 1;
  return *std::max_element(of_rank.begin(), of_rank.end()) * static_cast<double>(of_rank.size()) / sum;
}

Quality measure(const npu::RunContext& run, const CommunicationGraph& graph, const Partition& partition) {
  Quality result;
  Lookahead lookahead;
  for (const auto& flow : graph.flows) {
    result.total_bytes += flow.bytes;
    result.total_messages += flow.messages;
    const NpuId from(flow.from), to(flow.to);
    if (partition.rank_of(from) == partition.rank_of(to)) continue;
    result.bytes += flow.bytes;
    result.messages += flow.messages;
    lookahead.at_most(run.send_delay(from, to, Bytes(0)));
  }
  std::vector<bool> crosses(run.communicators.size());
  for (std::size_t g = 0; g < graph.groups.size(); ++g) {
    const auto& group = graph.groups[g];
    result.total_bytes += group.bytes;
    ++result.total_groups;
    if (!is_cut(group.members, partition)) continue;
    crosses[g] = true;
    result.bytes += group.bytes;
    ++result.groups;
  }
  if (result.groups > 0) take_in_collectives(run, crosses, lookahead);
  if (result.groups + result.messages > 0) lookahead.at_most(npu::half_of(run.of_all.least_recorded));
  take_in_memory(run, partition, lookahead);
  result.balance = balance(graph.loads, partition);
  result.lookahead = lookahead.value();
  return result;
}

}  // namespace orrery::partition
