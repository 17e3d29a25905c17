#include "orrery/partition/partitioning.hpp"

#include <metis.h>

#include <algorithm>
#include <map>
#include <new>
#include <numeric>
#include <set>

#include <fmt/format.h>

#include "orrery/collective/kind.hpp"

namespace orrery::partition {
namespace {

using trace::NodeKind;

struct Volume {
  std::uint64_t bytes = 0;
  std::uint64_t count = 0;
};

/// What an NPU of one structure says, by the slots of its own tables.
struct Script {
  std::vector<Volume> to_peer;  // [peer slots]
  std::vector<Volume> in_use;   // [program uses]
};

Script script_of(const npu::Program& program) {
  const auto& graph = *program.graph;
  Script script{std::vector<Volume>(graph.num_peer_slots), std::vector<Volume>(program.uses.size())};
  for (std::uint32_t i = 0; i < graph.num_nodes(); ++i) {
    const auto& node = graph.nodes[i];
    if (node.kind != NodeKind::send && !node.is_of_group()) continue;
    Volume& volume =
        node.kind == NodeKind::send ? script.to_peer[node.slot] : script.in_use[program.use_of_node(NodeId(i))];
    volume.bytes += node.size;
    ++volume.count;
  }
  return script;
}

/// One value each of all ranks, added up.
std::vector<std::uint64_t> summed(const std::vector<std::uint64_t>& mine, parallel::Communicator& world) {
  std::vector<std::int64_t> values(mine.begin(), mine.end());
  world.sum(values);
  return {values.begin(), values.end()};
}

std::vector<NpuId> members_of(const trace::Group& group, std::uint32_t num_npus) {
  if (!group.members.empty()) return group.members;
  std::vector<NpuId> all;
  for (std::uint32_t i = 0; i < num_npus; ++i) all.emplace_back(i);
  return all;
}

/// The graph as METIS takes it: the neighbours of vertex i are adjacent[first[i]] .. adjacent[first[i + 1] - 1].
struct MetisGraph {
  std::vector<idx_t> first, adjacent, edge_weights, vertex_weights;
};

/// Scaled so that the sum fits an idx_t of 32 bits with room for METIS's own sums; at least 1 each.
std::vector<idx_t> scaled(std::span<const std::uint64_t> weights) {
  double sum = 0;
  for (const auto weight : weights) sum += static_cast<double>(weight);
  constexpr double largest_sum = 1 << 28;
  const double factor = sum > largest_sum ? largest_sum / sum : 1;
  std::vector<idx_t> result;
  result.reserve(weights.size());
  for (const auto weight : weights)
    result.push_back(std::max<idx_t>(1, static_cast<idx_t>(static_cast<double>(weight) * factor)));
  return result;
}

MetisGraph graph_of(const Conversation& conversation) {
  std::vector<std::tuple<std::uint32_t, std::uint32_t, std::uint64_t>> edges;  // both ways
  const auto join = [&](std::uint32_t a, std::uint32_t b, std::uint64_t weight) {
    if (a == b) return;
    edges.emplace_back(a, b, weight);
    edges.emplace_back(b, a, weight);
  };
  for (const auto& flow : conversation.flows) join(flow.from, flow.to, flow.bytes + flow.messages);
  for (const auto& group : conversation.groups) {
    auto members = group.members;
    std::sort(members.begin(), members.end());
    if (members.size() < 2) continue;
    const std::uint64_t weight = (group.bytes + group.collectives) / members.size();
    for (std::size_t i = 0; i + 1 < members.size(); ++i) join(members[i].value(), members[i + 1].value(), weight);
    if (members.size() > 2) join(members.back().value(), members.front().value(), weight);
  }
  std::sort(edges.begin(), edges.end());
  MetisGraph graph;
  std::vector<std::uint64_t> weights;
  graph.first.assign(conversation.loads.size() + 1, 0);
  for (std::size_t i = 0; i < edges.size(); ++i) {
    const auto [from, to, weight] = edges[i];
    if (i > 0 && std::get<0>(edges[i - 1]) == from && std::get<1>(edges[i - 1]) == to) {
      weights.back() += weight;
      continue;
    }
    graph.adjacent.push_back(static_cast<idx_t>(to));
    weights.push_back(weight);
    ++graph.first[from + 1];
  }
  std::partial_sum(graph.first.begin(), graph.first.end(), graph.first.begin());
  graph.edge_weights = scaled(weights);
  graph.vertex_weights = scaled(conversation.loads);
  return graph;
}

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

/// Of the communicators marked in `is_cut`, the shortest collective.
void shortest_collectives(const npu::RunContext& run, const std::vector<bool>& is_cut, Lookahead& lookahead) {
  std::set<std::pair<const npu::Program*, GroupId>> done;  // NPUs of one program and group do the same
  for (const auto& npu : run.npus) {
    const auto& graph = *npu.program->graph;
    std::vector<std::shared_ptr<const collective::GroupLayout>> layouts(npu.groups.size());
    for (std::size_t use = 0; use < npu.groups.size(); ++use) {
      const auto& spec = run.communicators[npu.groups[use].index()];
      if (!is_cut[spec.id.index()] || !done.emplace(npu.program, spec.id).second) continue;
      layouts[use] = run.engine.layout(spec.group->members, spec.dimensions, spec.custom);
    }
    if (std::none_of(layouts.begin(), layouts.end(), [](const auto& layout) { return layout != nullptr; })) continue;
    for (std::uint32_t i = 0; i < graph.num_nodes(); ++i) {
      const auto& node = graph.nodes[i];
      if (node.kind != NodeKind::collective) continue;
      const auto& layout = layouts[npu.program->use_of_node(NodeId(i))];
      if (layout)
        lookahead.at_most(run.engine.least_duration(*layout, collective::kind_of(node.collective), Bytes(node.size)));
    }
  }
}

void shared_memory(const npu::RunContext& run, const Partition& partition, Lookahead& lookahead) {
  const auto& memory = run.memory;
  for (std::uint32_t server = 0; server < memory.num_servers(); ++server)
    for (std::uint32_t i = 1; i < memory.npus_per_server(); ++i) {
      const NpuId first = memory.first_npu_of(server);
      if (partition.rank_of(first) != partition.rank_of(NpuId(first.value() + i)))
        lookahead.at_most(memory.service_delay());
    }
}

}  // namespace

Conversation converse(const npu::RunContext& run, parallel::Communicator& world) {
  const auto num_npus = run.hosting.num_npus();
  std::vector<std::uint64_t> loads(num_npus);
  std::vector<std::uint64_t> bytes(run.communicators.size()), collectives(run.communicators.size());
  std::map<std::pair<std::uint32_t, std::uint32_t>, Flow> flows;
  std::map<const npu::Program*, Script> scripts;
  for (const auto& npu : run.npus) {
    loads[npu.id.index()] = npu.program->graph->num_nodes();
    if (run.options.replay_only) continue;
    auto [found, added] = scripts.try_emplace(npu.program);
    if (added) found->second = script_of(*npu.program);
    const Script& script = found->second;
    for (std::size_t slot = 0; slot < script.to_peer.size(); ++slot) {
      if (script.to_peer[slot].count == 0) continue;
      const auto peer = npu.trace->peers[slot].value();
      Flow& flow = flows[{npu.id.value(), peer}];
      flow = {npu.id.value(), peer, flow.bytes + script.to_peer[slot].bytes,
              flow.messages + script.to_peer[slot].count};
    }
    for (std::size_t use = 0; use < script.in_use.size(); ++use) {
      bytes[npu.groups[use].index()] += script.in_use[use].bytes;
      collectives[npu.groups[use].index()] += script.in_use[use].count;
    }
  }
  Conversation result;
  result.loads = summed(loads, world);
  bytes = summed(bytes, world);
  collectives = summed(collectives, world);
  std::vector<Flow> mine;
  for (const auto& [pair, flow] : flows) mine.push_back(flow);
  result.flows = world.all_gather(std::span<const Flow>(mine));
  std::sort(result.flows.begin(), result.flows.end(),
            [](const Flow& a, const Flow& b) { return std::tie(a.from, a.to) < std::tie(b.from, b.to); });
  if (run.options.replay_only) return result;
  for (const auto& spec : run.communicators)
    result.groups.push_back({members_of(*spec.group, num_npus), bytes[spec.id.index()], collectives[spec.id.index()]});
  return result;
}

Partition cut(const Conversation& conversation, int num_ranks) {
  const auto num_npus = static_cast<std::uint32_t>(conversation.loads.size());
  MetisGraph graph = graph_of(conversation);
  if (num_ranks == 1 || static_cast<std::uint32_t>(num_ranks) >= num_npus || graph.adjacent.empty())
    return Partition::blocks(num_npus, num_ranks);
  idx_t options[METIS_NOPTIONS];
  METIS_SetDefaultOptions(options);
  options[METIS_OPTION_SEED] = 1;
  options[METIS_OPTION_NUMBERING] = 0;
  options[METIS_OPTION_NCUTS] = 4;
  idx_t vertices = static_cast<idx_t>(num_npus), constraints = 1, parts = num_ranks, cut_weight = 0;
  std::vector<idx_t> part(num_npus);
  // METIS's manual: recursive bisection balances better, k-way cuts less and is faster for many parts.
  const auto partition = num_ranks <= 8 ? METIS_PartGraphRecursive : METIS_PartGraphKway;
  const int status =
      partition(&vertices, &constraints, graph.first.data(), graph.adjacent.data(), graph.vertex_weights.data(),
                nullptr, graph.edge_weights.data(), &parts, nullptr, nullptr, options, &cut_weight, part.data());
  if (status == METIS_ERROR_MEMORY) throw std::bad_alloc();
  orrery::ensure(status == METIS_OK, "METIS could not cut the graph");
  std::vector<Rank> ranks;
  for (const idx_t rank : part) ranks.emplace_back(rank);
  return Partition::from_ranks(std::move(ranks), num_ranks);
}

double balance(std::span<const std::uint64_t> loads, const Partition& partition) {
  std::vector<double> of_rank(static_cast<std::size_t>(partition.num_ranks()));
  for (std::size_t i = 0; i < loads.size(); ++i)
    of_rank[partition.rank_of(NpuId(static_cast<std::uint32_t>(i))).index()] += static_cast<double>(loads[i]);
  const double sum = std::accumulate(of_rank.begin(), of_rank.end(), 0.0);
  if (sum <= 0) return 1;
  return *std::max_element(of_rank.begin(), of_rank.end()) * static_cast<double>(of_rank.size()) / sum;
}

Cut measure(const npu::RunContext& run, const Conversation& conversation, const Partition& partition) {
  Cut result;
  Lookahead lookahead;
  for (const auto& flow : conversation.flows) {
    result.total_bytes += flow.bytes;
    result.total_messages += flow.messages;
    const NpuId from(flow.from), to(flow.to);
    if (partition.rank_of(from) == partition.rank_of(to)) continue;
    result.bytes += flow.bytes;
    result.messages += flow.messages;
    lookahead.at_most(run.delays.delay(from, to, Bytes(0)));
  }
  std::vector<bool> crosses(run.communicators.size());
  for (std::size_t g = 0; g < conversation.groups.size(); ++g) {
    const auto& group = conversation.groups[g];
    result.total_bytes += group.bytes;
    ++result.total_groups;
    if (!is_cut(group.members, partition)) continue;
    crosses[g] = true;
    result.bytes += group.bytes;
    ++result.groups;
  }
  if (result.groups > 0) shortest_collectives(run, crosses, lookahead);
  shared_memory(run, partition, lookahead);
  result.balance = balance(conversation.loads, partition);
  result.lookahead = lookahead.value();
  return result;
}

}  // namespace orrery::partition
