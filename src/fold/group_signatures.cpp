#include "group_signatures.hpp"

#include <algorithm>
#include <map>
#include <memory>
#include <numeric>
#include <tuple>
#include <utility>
#include <vector>

#include "orrery/collective/kind.hpp"

namespace orrery::fold {
namespace {

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

/// The members of all groups: those of communicators, then the NPUs that access each memory server, in the order in
/// which they are served.
class GroupMembers {
 public:
  GroupMembers(const npu::RunContext& context, const StructureOf& structure_of, std::uint32_t num_npus)
      : communicators_(context.communicators), num_npus_(num_npus) {
    if (!folds_servers(context)) return;
    for (std::uint32_t npu = 0; npu < num_npus; ++npu) {
      const auto first = context.memory.first_npu_of(context.memory.server_of(NpuId(npu)));
      if (structure_of(npu).accesses_memory) accessing_.push_back(npu);
      const bool is_last = npu + 1 == num_npus || npu + 1 - first.value() == context.memory.npus_per_server();
      if (is_last && accessing_.size() > first_accessing_.back()) first_accessing_.push_back(accessing_.size());
    }
  }

  std::uint32_t num_communicators() const { return static_cast<std::uint32_t>(communicators_.size()); }
  std::uint32_t count() const { return num_communicators() + static_cast<std::uint32_t>(first_accessing_.size() - 1); }
  bool is_server(std::uint32_t group) const { return group >= num_communicators(); }
  std::uint32_t size(std::uint32_t group) const {
    if (!is_server(group)) return communicators_[group].num_members(num_npus_);
    const auto server = group - num_communicators();
    return static_cast<std::uint32_t>(first_accessing_[server + 1] - first_accessing_[server]);
  }
  std::uint32_t member(std::uint32_t group, std::uint32_t position) const {
    if (!is_server(group)) return communicators_[group].member(position).value();
    return accessing_[first_accessing_[group - num_communicators()] + position];
  }
  /// Returns blocks of groups that have about as many members each.
  Blocks blocks(std::uint64_t num_ranks, std::size_t here) const {
    Blocks blocks{{}, here};
    if (num_ranks == 1) return blocks;
    std::uint64_t all = 0, before = 0;
    for (std::uint32_t group = 0; group < count(); ++group) all += size(group);
    blocks.bounds.push_back(0);
    for (std::uint32_t group = 0; group < count(); ++group) {
      before += size(group);
      while (blocks.bounds.size() < num_ranks && before * num_ranks >= all * blocks.bounds.size())
        blocks.bounds.push_back(group + 1);
    }
    blocks.bounds.resize(num_ranks + 1, count());
    return blocks;
  }

 private:
  std::span<const communicator::CommunicatorSpec> communicators_;
  std::uint32_t num_npus_;
  std::vector<std::uint32_t> accessing_;            // NPUs, by server
  std::vector<std::size_t> first_accessing_ = {0};  // [servers that NPUs access + 1]
};

/// Sets the positions of an NPU of this rank in a group. Returns the first of its uses of the group; none: it names the
/// group in no node.
std::uint32_t set_position(std::uint32_t group, bool is_server, std::uint32_t position, std::uint32_t npu,
                           SignatureGraph& graph) {
  std::uint32_t first_use = SignatureGraph::none;
  const auto own = npu - graph.npu_blocks.first();
  const auto begin = graph.first_membership[own], end = graph.first_membership[own + 1];
  for (auto use = begin; use < end; ++use) {
    auto& membership = graph.memberships[use];
    if (membership.group != (is_server ? SignatureGraph::none : group)) continue;
    membership = {group, position};
    first_use = std::min(first_use, static_cast<std::uint32_t>(use - begin));
  }
  return first_use;
}

/// Adds the members of the groups of this rank, and the positions of its NPUs in all groups. Collective.
void add_members(const GroupMembers& groups, SignatureGraph& graph, parallel::Communicator& world) {
  const std::size_t here = world.rank().index();
  const std::uint32_t first_npu = graph.npu_blocks.first(), num_own_npus = graph.npu_blocks.count(graph.num_npus());
  std::vector<std::vector<std::uint32_t>> uses(static_cast<std::size_t>(world.size()));  // in groups of other ranks
  std::size_t num_members = 0;
  for (std::uint32_t i = 0; i < graph.group_blocks.count(groups.count()); ++i)
    num_members += groups.size(graph.group_blocks.first() + i);
  graph.members.reserve(num_members);
  graph.first_member.push_back(0);
  for (std::uint32_t group = 0; group < groups.count(); ++group) {
    const std::size_t owner = graph.group_blocks.rank_of(group);
    const std::uint32_t size = groups.size(group);
    for (std::uint32_t i = 0; i < size; ++i) {
      const std::uint32_t npu = groups.member(group, i);
      const bool is_own = npu - first_npu < num_own_npus;
      const std::uint32_t use =
          is_own ? set_position(group, groups.is_server(group), i, npu, graph) : SignatureGraph::none;
      if (owner == here)
        graph.members.push_back({npu, use});
      else if (is_own)
        uses[owner].push_back(use);
    }
    if (owner == here) graph.first_member.push_back(graph.members.size());
  }
  if (world.size() == 1) return;
  uses = world.exchange(uses);
  std::vector<std::size_t> next(uses.size());  // of each rank, in the order of groups and positions
  for (auto& member : graph.members)
    if (const std::size_t rank = graph.npu_blocks.rank_of(member.npu); rank != here)
      member.use = uses[rank][next[rank]++];
}

/// What all ranks know of the collectives of a group: a bit for each kind, and these.
constexpr std::uint32_t not_together = std::uint32_t{1} << 30U;  ///< members that arrive together may not complete so
constexpr std::uint32_t not_named = std::uint32_t{1} << 31U;  ///< its first member does not name it: a check refuses it

/// Returns them for a communicator whose first member is of this rank.
std::uint32_t collectives_of(const GroupMembers& groups, std::uint32_t group, const collective::GroupLayout& layout,
                             const SignatureGraph& graph, const StructureOf& structure_of,
                             GroupCollectives& collectives) {
  const std::uint32_t first = groups.member(group, 0), size = groups.size(group);
  const auto uses = graph.memberships_of(first);
  const Structure& structure = structure_of(first);
  std::uint32_t result = not_named;
  for (std::uint32_t use = 0; use < structure.collectives.size(); ++use) {
    if (uses[use].group != group) continue;
    result &= ~not_named;
    for (const auto& collective : structure.collectives[use]) {
      result |= bit_of(collective.first);
      if (size > 1 && !collectives.completes_together(layout, size, collective)) result |= not_together;
    }
  }
  return result;
}

}  // namespace

bool folds_servers(const npu::RunContext& context) {
  return context.memory.num_servers() > 1 && !context.options.replay_only &&
         context.memory.make_server()->stages().empty();
}

void add_groups(const npu::RunContext& context, const StructureOf& structure_of, SignatureGraph& graph,
                parallel::Communicator& world) {
  const GroupMembers groups(context, structure_of, graph.num_npus());
  graph.group_blocks = groups.blocks(static_cast<std::uint64_t>(world.size()), world.rank().index());
  add_members(groups, graph, world);
  GroupCollectives collectives(context);
  std::vector<std::shared_ptr<const collective::GroupLayout>> layouts;  // [communicators]
  layouts.reserve(context.communicators.size());
  std::vector<std::uint32_t> known;  // group and what is known of its collectives, in turn
  for (const auto& spec : context.communicators) {
    const auto group = spec.id.value();
    const auto& layout =
        layouts.emplace_back(collective::layout_of(context.engine, *spec.group, spec.dimensions, spec.custom));
    // What is drawn for the collectives of a group tells it apart from all others.
    const bool draws = context.options.noise.variations.has(DrawnPer::collective) && groups.size(group) > 1;
    graph.layouts.push_back(draws ? ~group : collectives.number_of_layout(*layout));
    if (context.hosting.is_here(spec.member(0)))
      known.insert(known.end(), {group, collectives_of(groups, group, *layout, graph, structure_of, collectives)});
  }
  known = world.all_gather(std::span<const std::uint32_t>(known));
  std::vector<std::uint32_t> of_group(context.communicators.size());
  for (std::size_t i = 0; i < known.size(); i += 2) of_group[known[i]] = known[i + 1];
  for (const auto its : of_group) graph.completes_together.push_back((its & not_together) == 0);
  graph.layouts.resize(groups.count(), ~groups.num_communicators());  // servers: unlike communicators
  graph.completes_together.resize(groups.count(), 0);
  graph.positions_among = [&engine = context.engine, of_group = std::move(of_group), layouts = std::move(layouts)](
                              std::uint32_t group, std::span<const std::uint32_t> labels) {
    std::vector<std::uint32_t> positions(labels.begin(), labels.end());
    if (group >= of_group.size()) std::iota(positions.begin(), positions.end(), 0U);
    if (group >= of_group.size() || (of_group[group] & not_named) != 0) return positions;
    std::vector<collective::Kind> kinds;
    for (unsigned kind = 0; kind < 30; ++kind)
      if ((of_group[group] >> kind & 1U) != 0) kinds.push_back(static_cast<collective::Kind>(kind));
    return engine.equivalence_classes(*layouts[group], kinds, labels);
  };
}

}  // namespace orrery::fold
