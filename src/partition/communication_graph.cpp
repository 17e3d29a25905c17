#include "orrery/partition/communication_graph.hpp"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "orrery/communicator/communications.hpp"

namespace orrery::partition {
namespace {

using trace::NodeKind;

/// Adds the values of all ranks element by element. Collective.
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

/// The summary of each trace; equal structures share one.
class Summaries {
 public:
  Summaries(const ReadTraces& traces, const communicator::DimensionsInUse& dimensions_in_use) {
    for (const auto& trace : traces.traces) {
      const auto [found, added] = of_structure_.try_emplace(trace.graph.get());
      if (added) found->second = summarise(*trace.graph, dimensions_in_use);
      of_trace_.push_back(&found->second);
    }
  }
  const TraceSummary& operator[](std::size_t trace) const { return *of_trace_[trace]; }

 private:
  std::map<const trace::Graph*, TraceSummary> of_structure_;
  std::vector<const TraceSummary*> of_trace_;
};

/// The flows of all ranks, on every rank. Collective.
std::vector<Flow> gather_flows(const ReadTraces& mine, const Summaries& summaries, parallel::Communicator& world) {
  std::map<std::pair<std::uint32_t, std::uint32_t>, Flow> flows;
  for (std::size_t i = 0; i < mine.npus.size(); ++i) {
    const auto from = mine.npus[i].value();
    for (std::size_t slot = 0; slot < summaries[i].to_peer.size(); ++slot) {
      const Traffic& traffic = summaries[i].to_peer[slot];
      if (traffic.count == 0) continue;
      const auto to = mine.traces[i].peers[slot].value();
      Flow& flow = flows[{from, to}];
      flow = {from, to, flow.bytes + traffic.bytes, flow.messages + traffic.count};
    }
  }
  std::vector<Flow> own;
  for (const auto& [pair, flow] : flows) own.push_back(flow);
  auto all = world.all_gather(std::span<const Flow>(own));
  std::ranges::sort(all, {}, [](const Flow& flow) { return std::tie(flow.from, flow.to); });
  return all;
}

/// The traffic of the communicators of all ranks, on every rank. Collective.
std::vector<GroupTraffic> gather_groups(const ReadTraces& mine, const Summaries& summaries,
                                        const topology::Topology& topology, const collective::Engine& engine,
                                        parallel::Communicator& world) {
  std::vector<communicator::CommunicatorRequest> requests;
  for (std::size_t i = 0; i < mine.npus.size(); ++i)
    requests.push_back({mine.npus[i], mine.traces[i].groups, summaries[i].uses});
  const auto numbered = communicator::number_communicators(requests, mine.groups, topology, engine, world);
  std::vector<std::uint64_t> bytes(numbered.all.size()), collectives(numbered.all.size());
  for (std::size_t i = 0; i < requests.size(); ++i)
    for (std::size_t use = 0; use < requests[i].uses.size(); ++use) {
      const auto number = numbered.of_request[i][use].index();
      bytes[number] += summaries[i].in_use[use].bytes;
      collectives[number] += summaries[i].in_use[use].count;
    }
  bytes = summed(bytes, world);
  collectives = summed(collectives, world);
  std::vector<GroupTraffic> groups;
  for (std::size_t g = 0; g < numbered.all.size(); ++g)
    groups.push_back({members_of(numbered.all[g].group, topology.num_npus()), bytes[g], collectives[g]});
  return groups;
}

}  // namespace

TraceSummary summarise(const trace::Graph& graph, const communicator::DimensionsInUse& dimensions_in_use) {
  TraceSummary summary;
  summary.nodes = graph.num_nodes();
  summary.to_peer.resize(graph.num_peer_slots);
  const auto count = [](Traffic& traffic, const trace::Node& node) {
    traffic.bytes += node.size;
    ++traffic.count;
  };
  for (std::uint32_t i = 0; i < graph.num_nodes(); ++i) {
    const auto& node = graph.nodes[i];
    if (node.kind == NodeKind::send) count(summary.to_peer[node.slot], node);
    if (!node.is_of_group()) continue;
    const auto use = communicator::use_of(graph, NodeId(i), dimensions_in_use);
    const auto at = static_cast<std::size_t>(std::ranges::find(summary.uses, use) - summary.uses.begin());
    if (at == summary.uses.size()) {
      summary.uses.push_back(use);
      summary.in_use.emplace_back();
    }
    count(summary.in_use[at], node);
  }
  return summary;
}

CommunicationGraph communication_graph(const ReadTraces& mine, const topology::Topology& topology,
                                       const collective::Engine& engine, bool communicates,
                                       parallel::Communicator& world) {
  const Summaries summaries(mine, communicator::dimensions_in_use(topology, engine));
  CommunicationGraph graph;
  std::vector<std::uint64_t> loads(topology.num_npus());
  for (std::size_t i = 0; i < mine.npus.size(); ++i) loads[mine.npus[i].index()] = summaries[i].nodes;
  graph.loads = summed(loads, world);
  if (!communicates) return graph;
  graph.flows = gather_flows(mine, summaries, world);
  graph.groups = gather_groups(mine, summaries, topology, engine, world);
  return graph;
}

}  // namespace orrery::partition
