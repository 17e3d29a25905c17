#include "group_signatures.hpp"

#include <algorithm>
#include <map>
#include <memory>
#include <numeric>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include "orrery/collective/kind.hpp"

namespace orrery::fold {
namespace {

/// The collectives of groups: their kinds, and whether members that arrive together complete together.
class GroupCollectives {
 public:
  explicit GroupCollectives(const npu::RunContext& context) : context_(context) {}

  std::uint32_t number_of_layout(const collective::GroupLayout& layout) {
    return layouts_.try_emplace(&layout, static_cast<std::uint32_t>(layouts_.size())).first->second;
  }

  /// Returns the kinds of the collectives of a member in one communicator. `use`: its first use of it.
  std::vector<collective::Kind> kinds(const npu::NpuSpec& member, std::uint32_t use) {
    std::set<collective::Kind> kinds;
    for_each_collective(member, use, [&](collective::Kind kind, Bytes) { kinds.insert(kind); });
    return {kinds.begin(), kinds.end()};
  }

  /// Whether all members complete together in each of these collectives if they arrive together.
  bool complete_together(const collective::GroupLayout& layout, std::uint32_t members, const npu::NpuSpec& member,
                         std::uint32_t use) {
    if (members == 1) return true;
    bool together = true;
    for_each_collective(member, use, [&](collective::Kind kind, Bytes size) {
      together &= completes_together(layout, members, kind, size);
    });
    return together;
  }

 private:
  using KindAndSize = std::pair<collective::Kind, Bytes>;

  template <class Visit>
  void for_each_collective(const npu::NpuSpec& member, std::uint32_t use, Visit visit) {
    for (std::uint32_t u = use; u < member.groups.size(); ++u)
      if (member.groups[u] == member.groups[use])
        for (const auto& [kind, size] : collectives_of(*member.program)[u]) visit(kind, size);
  }

  /// [uses] the distinct collectives.
  const std::vector<std::set<KindAndSize>>& collectives_of(const npu::Program& program) {
    const auto [found, added] = collectives_.try_emplace(&program, program.uses.size());
    if (!added) return found->second;
    for (std::uint32_t i = 0; i < program.graph->num_nodes(); ++i)
      if (const auto& node = program.graph->nodes[i]; node.kind == trace::NodeKind::collective)
        found->second[program.use_of_node(NodeId(i))].emplace(collective::kind_of(node.collective), Bytes(node.size));
    return found->second;
  }

  bool completes_together(const collective::GroupLayout& layout, std::uint32_t members, collective::Kind kind,
                          Bytes size) {
    const auto [found, added] = together_.try_emplace({&layout, kind, size});
    if (!added) return found->second;
    if (!context_.engine.fits(layout, kind, size)) return found->second = false;  // a check refuses it
    const std::vector<Time> arrivals(members);
    std::vector<Time> completions(members);
    found->second = std::ranges::all_of(context_.engine.turns(layout, kind), [&](collective::Turn turn) {
      context_.engine.finish(layout, kind, size, arrivals, completions, turn);
      return std::ranges::all_of(completions, [&](Time time) { return time == completions.front(); });
    });
    return found->second;
  }

  const npu::RunContext& context_;
  std::map<const collective::GroupLayout*, std::uint32_t> layouts_;
  std::map<const npu::Program*, std::vector<std::set<KindAndSize>>> collectives_;
  std::map<std::tuple<const collective::GroupLayout*, collective::Kind, Bytes>, bool> together_;
};

std::uint32_t first_use(const npu::NpuSpec& npu, GroupId group) {
  const auto found = std::ranges::find(npu.groups, group);
  return found == npu.groups.end() ? SignatureGraph::none : static_cast<std::uint32_t>(found - npu.groups.begin());
}

/// Adds the uses of each NPU, without the positions, and a place for its memory server.
void add_memberships(const npu::RunContext& context, SignatureGraph& graph) {
  const bool has_servers = folds_servers(context);
  std::map<const npu::Program*, bool> accesses;
  graph.first_membership.push_back(0);
  for (const npu::NpuSpec& npu : context.npus) {
    for (const GroupId group : npu.groups) graph.memberships.push_back({group.value(), 0});
    if (has_servers) {
      const auto [found, added] = accesses.try_emplace(npu.program, false);
      if (added) found->second = accesses_memory(*npu.program);
      if (found->second) graph.memberships.push_back({});
    }
    graph.first_membership.push_back(graph.memberships.size());
  }
}

/// Adds the members of a group and sets their positions.
void add_members(const npu::RunContext& context, const communicator::CommunicatorSpec& spec, SignatureGraph& graph) {
  const auto& members = spec.group->members;
  const auto size = static_cast<std::uint32_t>(members.empty() ? context.npus.size() : members.size());
  for (std::uint32_t i = 0; i < size; ++i) {
    const auto npu = members.empty() ? i : members[i].value();
    const auto& groups = context.npus[npu].groups;
    graph.members.push_back({npu, first_use(context.npus[npu], spec.id)});
    for (std::size_t use = 0; use < groups.size(); ++use)
      if (groups[use] == spec.id) graph.memberships[graph.first_membership[npu] + use].position = i;
  }
  graph.first_member.push_back(graph.members.size());
}

/// Adds the NPUs of each memory server that access it as a group in which every position counts: accesses of one moment
/// are served in the order of NPUs.
void add_servers(const npu::RunContext& context, SignatureGraph& graph) {
  const std::uint32_t layout = ~static_cast<std::uint32_t>(context.communicators.size());  // unlike those of groups
  std::uint32_t members_before = 0;
  for (std::uint32_t npu = 0; npu < context.npus.size(); ++npu) {
    const auto first = context.memory.first_npu_of(context.memory.server_of(NpuId(npu)));
    const auto use = static_cast<std::uint32_t>(context.npus[npu].groups.size());
    if (first.value() == npu) members_before = static_cast<std::uint32_t>(graph.members.size());
    const auto end = graph.first_membership[npu + 1];
    if (end - graph.first_membership[npu] > use) {
      graph.memberships[end - 1] = {graph.num_groups(),
                                    static_cast<std::uint32_t>(graph.members.size()) - members_before};
      graph.members.push_back({npu, use});
    }
    const bool is_last =
        npu + 1 == context.npus.size() || (npu + 1 - first.value()) == context.memory.npus_per_server();
    if (!is_last || graph.members.size() == members_before) continue;
    graph.first_member.push_back(graph.members.size());
    graph.layouts.push_back(layout);
    graph.completes_together.push_back(0);
  }
}

}  // namespace

bool folds_servers(const npu::RunContext& context) {
  return context.memory.num_servers() > 1 && !context.options.replay_only &&
         context.memory.make_server()->stages().empty();
}

bool accesses_memory(const npu::Program& program) {
  return std::ranges::any_of(program.graph->nodes, [](const trace::Node& node) { return node.is_access(); });
}

void add_groups(const npu::RunContext& context, SignatureGraph& graph) {
  const auto collectives = std::make_shared<GroupCollectives>(context);
  const auto layout_of = [&context](const communicator::CommunicatorSpec& spec) {
    return context.engine.layout(spec.group->members, spec.dimensions, spec.custom);
  };
  add_memberships(context, graph);
  graph.first_member.push_back(0);
  for (const auto& spec : context.communicators) {
    add_members(context, spec, graph);
    const auto members = graph.members_of(spec.id.value());
    const auto& first = members.front();
    const auto layout = layout_of(spec);
    // What is drawn for the collectives of a group tells it apart from all others.
    const bool draws = context.options.noise.variations.has(DrawnPer::collective) && members.size() > 1;
    graph.layouts.push_back(draws ? ~spec.id.value() : collectives->number_of_layout(*layout));
    graph.completes_together.push_back(first.use == SignatureGraph::none ||
                                       collectives->complete_together(*layout,
                                                                      static_cast<std::uint32_t>(members.size()),
                                                                      context.npus[first.npu], first.use));
  }
  if (folds_servers(context)) add_servers(context, graph);
  graph.positions_among = [&context, collectives, layout_of](std::uint32_t group, SignatureGraph::Member first,
                                                             std::span<const std::uint32_t> labels) {
    if (group >= context.communicators.size()) {
      std::vector<std::uint32_t> positions(labels.size());
      std::iota(positions.begin(), positions.end(), 0U);
      return positions;
    }
    if (first.use == SignatureGraph::none)
      return std::vector<std::uint32_t>(labels.begin(), labels.end());  // a check refuses it
    const auto kinds = collectives->kinds(context.npus[first.npu], first.use);
    return context.engine.equivalence_classes(*layout_of(context.communicators[group]), kinds, labels);
  };
}

}  // namespace orrery::fold
