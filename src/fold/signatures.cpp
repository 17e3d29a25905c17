#include "orrery/fold/signatures.hpp"

#include <algorithm>
#include <utility>

#include "group_signatures.hpp"
#include "orrery/base/error.hpp"
#include "own_signatures.hpp"
#include "stream_table.hpp"
#include "structures.hpp"

namespace orrery::fold {
namespace {

/// Says which NPUs are of which rank. Fails (an internal Error) unless each rank has a contiguous block of them, in the
/// order of ranks. Collective.
void add_blocks(const npu::RunContext& context, SignatureGraph& graph, parallel::Communicator& world) {
  if (world.size() == 1) return;
  const auto mine = static_cast<std::uint32_t>(context.npus.size());
  graph.npu_blocks.bounds.push_back(0);
  for (const auto count : world.all_gather(std::span(&mine, 1)))
    graph.npu_blocks.bounds.push_back(graph.npu_blocks.bounds.back() + count);
  graph.npu_blocks.here = world.rank().index();
  const auto own = context.hosting.of_npu.subspan(graph.npu_blocks.first(), mine);
  ensure(std::ranges::all_of(own, [&](Rank rank) { return rank == context.hosting.here; }),
         "NPUs are folded from contiguous blocks of the ranks");
}

/// Adds the groups of the NPUs of this rank, and `none` for the memory server that an NPU accesses.
void add_memberships(const npu::RunContext& context, const Structures& structures, SignatureGraph& graph) {
  const bool has_servers = folds_servers(context);
  const auto accesses = [&](const npu::NpuSpec& npu) {
    return has_servers && structures.all[structures.number_of.at(npu.program)].accesses_memory;
  };
  std::size_t count = 0;
  for (const npu::NpuSpec& npu : context.npus) count += npu.groups.size() + (accesses(npu) ? 1 : 0);
  graph.memberships.reserve(count);
  graph.first_membership.reserve(context.npus.size() + 1);
  graph.first_membership.push_back(0);
  for (const npu::NpuSpec& npu : context.npus) {
    for (const GroupId group : npu.groups) graph.memberships.push_back({group.value(), 0});
    if (accesses(npu)) graph.memberships.push_back({SignatureGraph::none, 0});
    graph.first_membership.push_back(graph.memberships.size());
  }
}

}  // namespace

Signatures signatures_of(const npu::RunContext& context, const StreamsOf& streams, parallel::Communicator& world) {
  const bool communicates = !context.options.replay_only;
  const Structures structures = number_structures(context.npus, context.options.replay_only, world);
  Signatures result;
  for (const Structure& structure : structures.all) result.num_nodes.push_back(structure.num_nodes);
  SignatureGraph& graph = result.graph;
  add_blocks(context, graph, world);
  const auto add_own = [&](const StreamTable* table) {
    auto own = own_signatures(context, structures, table, world);
    graph.signature_of_npu = world.all_gather(std::span<const std::uint32_t>(own.of_npu));
    result.structure_of_signature = std::move(own.structure_of_signature);
    result.counts = own.counts;
  };
  if (!communicates) {
    add_own(nullptr);
    graph.first_member = {0};
    graph.first_membership.assign(context.npus.size() + 1, 0);
    graph.first_stream.assign(context.npus.size() + 1, 0);
    return result;
  }
  {
    const StreamTable table(context.npus, streams);
    add_own(&table);
    graph.first_stream = table.first();
    graph.streams = table.other_ends(context.hosting, world);
  }
  add_memberships(context, structures, graph);
  const auto structure_of = [&](std::uint32_t npu) -> const Structure& {
    return structures.all[result.structure_of_signature[graph.signature_of_npu[npu]]];
  };
  add_groups(context, structure_of, graph, world);
  return result;
}

}  // namespace orrery::fold
