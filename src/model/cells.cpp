#include "cells.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <span>

#include <boost/pending/disjoint_sets.hpp>

namespace orrery::model {
namespace {

// NPUs whose state fits most cores' caches: alone, and with their links. Where clients run ahead, cells are groups.
constexpr std::uint32_t most_in_group = 64, most_with_links = 128;

std::uint32_t most_npus(const npu::RunContext& run, std::uint32_t otherwise) {
  return run.cell_size > 0 ? run.cell_size : otherwise;
}

/// Returns [uses] the number of nodes of a program that use each group.
std::vector<std::uint64_t> count_uses(const npu::Program& program) {
  std::vector<std::uint64_t> counts(program.uses.size());
  const auto& nodes = program.graph->nodes;
  for (std::uint32_t i = 0; i < nodes.size(); ++i)
    if (nodes[i].is_of_group()) ++counts[program.use_of_node(NodeId(i))];
  return counts;
}

/// Returns the group of few members with which an NPU has most collectives, if there is one.
std::optional<GroupId> closest_group(const npu::RunContext& run, const npu::NpuSpec& npu,
                                     std::span<const std::uint64_t> counts) {
  std::optional<GroupId> closest;
  std::uint64_t most = 0;
  for (std::size_t use = 0; use < counts.size(); ++use) {
    const std::uint32_t members = run.communicators[npu.groups[use].index()].num_participants(run.hosting.num_npus());
    if (members < 2 || members > most_npus(run, most_in_group) || counts[use] <= most) continue;
    most = counts[use];
    closest = npu.groups[use];
  }
  return closest;
}

/// Returns [peer slots] the number of sends and receives of a program.
std::vector<std::uint64_t> count_messages(const npu::Program& program, std::size_t num_peers) {
  std::vector<std::uint64_t> counts(num_peers);
  for (const trace::Node& node : program.graph->nodes)
    if (node.kind == trace::NodeKind::send || node.kind == trace::NodeKind::receive) ++counts[node.slot];
  return counts;
}

/// NPUs of this rank that talk to each other: a small group, or an NPU and a peer.
struct Bond {
  std::uint64_t weight = 0;  ///< nodes of an NPU by which they do
  std::uint64_t total = 0;   ///< total over all of them, as far as it counts them
  std::vector<NpuId> npus;
};

/// Finds the bonds among NPUs of this rank.
class BondFinder {
 public:
  explicit BondFinder(const npu::RunContext& run) : run_(run), of_group_(run.communicators.size()) {
    for (const npu::NpuSpec& npu : run.npus) add(npu);
    for (std::size_t group = 0; group < of_group_.size(); ++group) {
      const auto& members = run_.communicators[group].group->members;
      if (of_group_[group] > 0) add(of_group_[group], of_group_[group] * members.size(), members);
    }
    std::ranges::sort(bonds_, [](const Bond& a, const Bond& b) {
      if (a.weight != b.weight) return a.weight > b.weight;
      return a.npus.size() != b.npus.size() ? a.npus.size() < b.npus.size() : a.npus < b.npus;
    });
  }

  /// Returns them, the closest first.
  const std::vector<Bond>& bonds() const { return bonds_; }
  /// Returns the number of nodes by which NPUs of this rank talk to others.
  std::uint64_t num_nodes() const { return num_nodes_; }

 private:
  void add(const npu::NpuSpec& npu) {
    const auto [found, is_new] = counts_.try_emplace(npu.program);
    if (is_new) found->second = {count_uses(*npu.program), count_messages(*npu.program, npu.trace->peers.size())};
    const auto& [uses, messages] = found->second;
    for (std::size_t use = 0; use < uses.size(); ++use) {
      std::uint64_t& weight = of_group_[npu.groups[use].index()];
      weight = std::max(weight, uses[use]);
      num_nodes_ += uses[use];
    }
    for (std::size_t slot = 0; slot < messages.size(); ++slot) {
      num_nodes_ += messages[slot];
      if (messages[slot] > 0) add(messages[slot], messages[slot], {npu.id, npu.trace->peers[slot]});
    }
  }
  void add(std::uint64_t weight, std::uint64_t total, const std::vector<NpuId>& npus) {
    const bool is_small = !npus.empty() && npus.size() <= most_npus(run_, most_with_links);
    if (is_small && std::ranges::all_of(npus, [this](NpuId npu) { return run_.hosting.is_here(npu); }))
      bonds_.push_back({weight, total, npus});
  }

  const npu::RunContext& run_;
  std::map<const npu::Program*, std::pair<std::vector<std::uint64_t>, std::vector<std::uint64_t>>> counts_;
  std::vector<std::uint64_t> of_group_;  // [communicators] the most nodes of an NPU
  std::uint64_t num_nodes_ = 0;
  std::vector<Bond> bonds_;
};

/// Unites NPUs by their bonds, as long as no set becomes too large. Returns [num_npus] the sets, numbered from 0.
std::vector<std::uint32_t> unite(const npu::RunContext& run, const std::vector<Bond>& bonds) {
  boost::disjoint_sets_with_storage<> sets(run.hosting.num_npus());
  std::vector<std::uint32_t> sizes(run.hosting.num_npus(), 1);
  std::vector<std::size_t> roots;
  for (const Bond& bond : bonds) {
    roots.clear();
    for (const NpuId npu : bond.npus) roots.push_back(sets.find_set(npu.index()));
    std::ranges::sort(roots);
    const auto equal = std::ranges::unique(roots);
    roots.erase(equal.begin(), equal.end());
    std::uint32_t size = 0;
    for (const std::size_t root : roots) size += sizes[root];
    if (size > most_npus(run, most_with_links)) continue;
    for (const std::size_t root : roots) sets.union_set(roots.front(), root);
    sizes[sets.find_set(roots.front())] = size;
  }
  std::vector<std::uint32_t> of_npu(run.hosting.num_npus());
  std::map<std::size_t, std::uint32_t> numbers;
  for (const npu::NpuSpec& npu : run.npus) {
    const auto next = static_cast<std::uint32_t>(numbers.size());
    of_npu[npu.id.index()] = numbers.try_emplace(sets.find_set(npu.id.index()), next).first->second;
  }
  return of_npu;
}

/// Returns whether most of the nodes by which NPUs of this rank talk do so within these cells.
bool keep_most(const npu::RunContext& run, const std::vector<std::uint32_t>& cell_of, const BondFinder& found) {
  std::uint64_t kept = 0;
  for (const Bond& bond : found.bonds()) {
    const std::uint32_t cell = cell_of[bond.npus.front().index()];
    const auto is_in = [&](NpuId npu) { return run.hosting.is_here(npu) && cell_of[npu.index()] == cell; };
    if (run.links->keeps_within(bond.npus, is_in)) kept += bond.total;
  }
  return 2 * kept > found.num_nodes();
}

}  // namespace

std::vector<std::uint32_t> cells_of(const npu::RunContext& run) {
  std::map<const npu::Program*, std::vector<std::uint64_t>> counts;
  std::map<GroupId, std::uint32_t> of_group;
  std::vector<std::uint32_t> cells(run.hosting.num_npus());
  std::uint32_t num_cells = 0, without_group = 0, last = 0;  // the last cell of NPUs without such a group
  for (const npu::NpuSpec& npu : run.npus) {
    const auto [found, added] = counts.try_emplace(npu.program);
    if (added) found->second = count_uses(*npu.program);
    std::uint32_t& cell = cells[npu.id.index()];
    if (const auto group = closest_group(run, npu, found->second)) {
      const auto [known, is_new] = of_group.try_emplace(*group, num_cells);
      cell = known->second;
      num_cells += is_new;
    } else {
      cell = without_group++ % most_npus(run, most_in_group) == 0 ? num_cells++ : last;
      last = cell;
    }
  }
  return cells;
}

std::vector<std::uint32_t> cells_of_links(const npu::RunContext& run) {
  if (run.npus.empty() || run.options.gpu || run.of_all.accesses_servers) return {};
  // Some networks do not know the ways of messages: not even an NPU keeps those to itself.
  if (!run.links->keeps_within(std::array{run.npus.front().id}, [](NpuId) { return true; })) return {};
  const std::uint32_t num_processes = run.links->num_processes();
  if (num_processes > 0 && !run.links->owner_of(num_processes - 1)) return {};  // groups come after links
  const BondFinder found(run);
  std::vector<std::uint32_t> cell_of = unite(run, found.bonds());
  if (std::ranges::max(cell_of) == 0 || !keep_most(run, cell_of, found)) cell_of.clear();
  return cell_of;
}

std::vector<std::uint32_t> cells_of_lps(const npu::RunContext& run) {
  if (run.cell_of.empty()) return {};
  std::vector<std::uint32_t> cells(run.cell_of.begin(), run.cell_of.end());
  cells.resize(run.first_link().value());
  for (std::uint32_t process = 0; process < run.links->num_processes(); ++process)
    cells.push_back(run.cell_of[run.links->owner_of(process).value_or(NpuId(0)).index()]);
  return cells;
}

}  // namespace orrery::model
