#include "orrery/fold/signatures.hpp"

#include <utility>

#include "group_signatures.hpp"
#include "own_signatures.hpp"
#include "stream_table.hpp"
#include "structures.hpp"

namespace orrery::fold {
namespace {

/// Returns the first index of each NPU in a list of what NPUs have, of which this rank knows how many each of its own
/// has: [npus + 1]. Collective.
std::vector<std::size_t> shared_firsts(std::span<const std::uint32_t> mine, parallel::Communicator& world) {
  std::vector<std::size_t> firsts{0};
  const auto all = world.all_gather(mine);
  firsts.reserve(all.size() + 1);
  for (const auto count : all) firsts.push_back(firsts.back() + count);
  return firsts;
}

/// Fills in the groups of the NPUs of all ranks, and `none` for the memory server that an NPU accesses. Collective.
void add_memberships(const npu::RunContext& context, const Structures& structures, SignatureGraph& graph,
                     parallel::Communicator& world) {
  const bool has_servers = folds_servers(context);
  std::vector<std::uint32_t> counts, groups;
  counts.reserve(context.npus.size());
  for (const npu::NpuSpec& npu : context.npus) {
    const bool accesses = has_servers && structures.all[structures.number_of.at(npu.program)].accesses_memory;
    for (const GroupId group : npu.groups) groups.push_back(group.value());
    if (accesses) groups.push_back(SignatureGraph::none);
    counts.push_back(static_cast<std::uint32_t>(npu.groups.size() + (accesses ? 1 : 0)));
  }
  graph.first_membership = shared_firsts(counts, world);
  groups = world.all_gather(std::span<const std::uint32_t>(groups));
  graph.memberships.reserve(groups.size());
  for (const auto group : groups) graph.memberships.push_back({group, 0});
}

/// Fills in the streams of the NPUs of all ranks. Collective.
void add_streams(const npu::RunContext& context, const StreamTable& table, SignatureGraph& graph,
                 parallel::Communicator& world) {
  std::vector<std::uint32_t> counts(context.npus.size());
  for (std::uint32_t i = 0; i < counts.size(); ++i) counts[i] = table.count(i);
  graph.first_stream = shared_firsts(counts, world);
  graph.streams = world.all_gather(std::span<const SignatureGraph::StreamEnd>(table.other_ends(context.hosting, world)));
}

}  // namespace

Signatures signatures_of(const npu::RunContext& context, const StreamsOf& streams, parallel::Communicator& world) {
  const bool communicates = !context.options.replay_only;
  const Structures structures = number_structures(context.npus, context.options.replay_only, world);
  Signatures result;
  for (const Structure& structure : structures.all) result.num_nodes.push_back(structure.num_nodes);
  SignatureGraph& graph = result.graph;
  const auto add_own = [&](const StreamTable* table) {
    auto own = own_signatures(context, structures, table, world);
    graph.signature_of_npu = world.all_gather(std::span<const std::uint32_t>(own.of_npu));
    result.structure_of_signature = std::move(own.structure_of_signature);
    result.counts = own.counts;
  };
  if (!communicates) {
    add_own(nullptr);
    graph.first_member = {0};
    graph.first_membership.assign(graph.num_npus() + 1, 0);
    graph.first_stream.assign(graph.num_npus() + 1, 0);
    return result;
  }
  {
    const StreamTable table(context.npus, streams);
    add_own(&table);
    add_streams(context, table, graph, world);
  }
  add_memberships(context, structures, graph, world);
  const auto structure_of = [&](std::uint32_t npu) -> const Structure& {
    return structures.all[result.structure_of_signature[graph.signature_of_npu[npu]]];
  };
  add_groups(context, structure_of, graph);
  return result;
}

}  // namespace orrery::fold
