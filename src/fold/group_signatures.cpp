#include "group_signatures.hpp"

#include <algorithm>
#include <map>
#include <numeric>
#include <tuple>
#include <utility>
#include <vector>

#include "orrery/collective/kind.hpp"

namespace orrery::fold {
namespace {

constexpr std::uint32_t none = SignatureGraph::none;

std::uint32_t bit_of(collective::Kind kind) { return std::uint32_t{1} << static_cast<unsigned>(kind); }

/// Says whether members of groups that arrive together complete together.
class GroupCollectives {
 public:
  explicit GroupCollectives(const npu::RunContext& context) : context_(context) {}

  std::uint32_t number_of_layout(const collective::GroupLayout& layout) {
    return layouts_.try_emplace(&layout, static_cast<std::uint32_t>(layouts_.size())).first->second;
  }

  bool completes_together(const collective::GroupLayout& layout, std::uint32_t members,
                          const Structure::Collective& collective) {
    const auto [kind, size] = collective;
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

 private:
  const npu::RunContext& context_;
  std::map<const collective::GroupLayout*, std::uint32_t> layouts_;
  std::map<std::tuple<const collective::GroupLayout*, collective::Kind, Bytes>, bool> together_;
};

/// Calls visit(collective) for the distinct collectives of each use of a group by its first member.
template <class Visit>
void for_each_collective(const SignatureGraph& graph, std::uint32_t group, const StructureOf& structure_of,
                         Visit visit) {
  const auto first = graph.members_of(group).front();
  if (first.use == none) return;  // a check refuses it
  const Structure& structure = structure_of(first.npu);
  const auto uses = graph.memberships_of(first.npu);
  for (std::uint32_t use = first.use; use < structure.collectives.size(); ++use)
    if (uses[use].group == group)
      for (const auto& collective : structure.collectives[use]) visit(collective);
}

/// Adds the members of a group and sets their positions.
void add_members(const communicator::CommunicatorSpec& spec, SignatureGraph& graph) {
  const std::uint32_t size = spec.num_members(graph.num_npus());
  for (std::uint32_t i = 0; i < size; ++i) {
    const auto npu = spec.member(i).value();
    std::uint32_t first_use = none;
    const auto begin = graph.first_membership[npu], end = graph.first_membership[npu + 1];
    for (auto use = begin; use < end; ++use) {
      if (graph.memberships[use].group != spec.id.value()) continue;
      graph.memberships[use].position = i;
      first_use = std::min(first_use, static_cast<std::uint32_t>(use - begin));
    }
    graph.members.push_back({npu, first_use});
  }
  graph.first_member.push_back(graph.members.size());
}

/// Adds the NPUs of each memory server that access it as a group in which every position counts: accesses of one moment
/// are served in the order of NPUs.
void add_servers(const npu::RunContext& context, SignatureGraph& graph) {
  const std::uint32_t layout = ~static_cast<std::uint32_t>(context.communicators.size());  // unlike those of groups
  const std::uint32_t num_npus = graph.num_npus();
  std::uint32_t members_before = 0;
  for (std::uint32_t npu = 0; npu < num_npus; ++npu) {
    const auto first = context.memory.first_npu_of(context.memory.server_of(NpuId(npu)));
    if (first.value() == npu) members_before = static_cast<std::uint32_t>(graph.members.size());
    const auto begin = graph.first_membership[npu], end = graph.first_membership[npu + 1];
    if (end > begin && graph.memberships[end - 1].group == none) {
      graph.memberships[end - 1] = {graph.num_groups(),
                                    static_cast<std::uint32_t>(graph.members.size()) - members_before};
      graph.members.push_back({npu, static_cast<std::uint32_t>(end - begin - 1)});
    }
    const bool is_last = npu + 1 == num_npus || (npu + 1 - first.value()) == context.memory.npus_per_server();
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

void add_groups(const npu::RunContext& context, const StructureOf& structure_of, SignatureGraph& graph) {
  GroupCollectives collectives(context);
  const auto layout_of = [&context](const communicator::CommunicatorSpec& spec) {
    return context.engine.layout(spec.group->members, spec.dimensions, spec.custom);
  };
  std::vector<std::uint32_t> kinds;  // [communicators] a bit for each kind of collective
  std::size_t num_members = 0;
  for (const auto& spec : context.communicators) num_members += spec.num_members(graph.num_npus());
  graph.members.reserve(num_members);
  graph.first_member.push_back(0);
  for (const auto& spec : context.communicators) {
    add_members(spec, graph);
    const auto size = static_cast<std::uint32_t>(graph.members_of(spec.id.value()).size());
    const auto layout = layout_of(spec);
    // What is drawn for the collectives of a group tells it apart from all others.
    const bool draws = context.options.noise.variations.has(DrawnPer::collective) && size > 1;
    graph.layouts.push_back(draws ? ~spec.id.value() : collectives.number_of_layout(*layout));
    bool together = true;
    kinds.push_back(0);
    for_each_collective(graph, spec.id.value(), structure_of, [&](const Structure::Collective& collective) {
      kinds.back() |= bit_of(collective.first);
      together &= size == 1 || collectives.completes_together(*layout, size, collective);
    });
    graph.completes_together.push_back(together);
  }
  if (folds_servers(context)) add_servers(context, graph);
  graph.positions_among = [&context, kinds = std::move(kinds), layout_of](std::uint32_t group,
                                                                          SignatureGraph::Member first,
                                                                          std::span<const std::uint32_t> labels) {
    if (group >= context.communicators.size()) {
      std::vector<std::uint32_t> positions(labels.size());
      std::iota(positions.begin(), positions.end(), 0U);
      return positions;
    }
    if (first.use == none) return std::vector<std::uint32_t>(labels.begin(), labels.end());  // a check refuses it
    std::vector<collective::Kind> of_group;
    for (unsigned kind = 0; kind < 32; ++kind)
      if ((kinds[group] >> kind & 1U) != 0) of_group.push_back(static_cast<collective::Kind>(kind));
    return context.engine.equivalence_classes(*layout_of(context.communicators[group]), of_group, labels);
  };
}

}  // namespace orrery::fold
