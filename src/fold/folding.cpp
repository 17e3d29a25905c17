#include "orrery/fold/folding.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include <fmt/format.h>

#include "interner.hpp"
#include "orrery/base/error.hpp"
#include "orrery/base/text.hpp"

namespace orrery::fold {

namespace {

constexpr std::uint32_t most_wrong = 6;  // runs that show divergences

/// Returns the classes under these assumptions, which the graph takes over. After a run that has shown divergences,
/// nothing is assumed any more if that makes fewer than twice as many classes, or if there have been too many such
/// runs.
EquivalenceClasses classes_under(Assumptions&& assumptions, SignatureGraph& graph, parallel::Communicator& world) {
  graph.assumes_completing_together = assumptions.num_wrong < most_wrong;
  graph.divergences = std::move(assumptions.divergences);
  auto classes = refine(graph, world);
  if (assumptions.num_wrong == 0) return classes;
  graph.assumes_completing_together = false;
  auto divergences = std::exchange(graph.divergences, {});
  if (auto proven = refine(graph, world); proven.count() < 2 * classes.count()) return proven;
  graph.assumes_completing_together = true;
  graph.divergences = std::move(divergences);
  return classes;
}

StreamsOf streams_of_programs(std::span<const npu::NpuSpec> npus) {
  StreamsOf streams;
  add_streams_of_programs(npus, streams);
  return streams;
}

/// Returns labels that are equal where both lists are. The first list may be empty.
std::vector<std::uint32_t> finer(std::span<const std::uint32_t> one, std::span<const std::uint32_t> other) {
  std::vector<std::uint32_t> labels(other.begin(), other.end());
  Interner both;
  for (std::size_t i = 0; i < one.size(); ++i) labels[i] = both.of(std::array{one[i], other[i]});
  return labels;
}

}  // namespace

Folding::Folding(const npu::RunContext& context, const Assignment& assignment, const ReadNpus& read,
                 parallel::Communicator& world, Assumptions assumptions)
    : own_npus_{context.npus, context.hosting},
      all_communicators_(context.communicators),
      replay_only_(context.options.replay_only),
      streams_(streams_of_programs(context.npus)),
      num_wrong_(assumptions.num_wrong),
      signatures_(signatures_of(context, streams_, world)),
      classes_(classes_under(std::move(assumptions), signatures_.graph, world)) {
  signatures_.graph.positions_among = {};  // it refers to `context`
  deal(assignment, world.size());
  tables_ = RepresentativeTables(classes_.representatives, own_npus_, signatures_.graph, world);
  if (replay_only_)  // in which NPUs do not communicate
    communicators_.assign(all_communicators_.begin(), all_communicators_.end());
  else
    choose_communicators(world);
  host_representatives(read, world);
  signatures_.graph.forget_items();
}

/// Makes the representatives that this rank simulates, and reads those that other ranks have.
void Folding::host_representatives(const ReadNpus& read, parallel::Communicator& world) {
  std::vector<NpuId> missing;
  for (const auto representative : classes_.representatives)
    if (host_of_npu_[representative] == own_npus_.owners.here && !own_npus_.has(NpuId(representative)))
      missing.emplace_back(representative);
  std::vector<npu::NpuSpec> others;
  world.agree([&] { others = read(missing); });
  add_streams_of_programs(others, streams_);
  for (const auto representative : classes_.representatives) {
    if (host_of_npu_[representative] != own_npus_.owners.here) continue;
    const NpuId id(representative);
    npu::NpuSpec npu = own_npus_.has(id) ? own_npus_[id] : *std::ranges::find(others, id, &npu::NpuSpec::id);
    npu.groups.assign(groups_of(id).begin(), groups_of(id).end());
    folded_npus_.push_back(folded_npu(npu));
    npu.folded = &folded_npus_.back();
    npus_.push_back(std::move(npu));
    if (replay_only_) continue;
    for (GroupId& group : npus_.back().groups)
      group = GroupId(communicator_of_class_.at(classes_.of_group[group.index()]));
  }
}

void Folding::deal(const Assignment& assignment, int ranks) {
  const std::uint64_t count = classes_.count();
  const auto num_ranks = static_cast<std::uint64_t>(ranks);
  std::vector<Rank> hosts;  // [classes]
  hosts.reserve(count);
  if (assignment.rank_of_npu.empty()) {
    for (std::uint64_t its = 0; its < count; ++its) hosts.emplace_back(static_cast<int>(its * num_ranks / count));
  } else {
    std::vector<std::pair<std::uint32_t, Rank>> possible;  // by class
    possible.reserve(num_npus());
    for (std::size_t npu = 0; npu < num_npus(); ++npu)
      possible.emplace_back(classes_.of_npu[npu], assignment.rank_of_npu[npu]);
    std::ranges::sort(possible);
    std::vector<std::uint64_t> loads(num_ranks);  // nodes
    for (auto first = possible.begin(); first != possible.end();) {
      const auto end = std::find_if(first, possible.end(), [&](const auto& one) { return one.first != first->first; });
      const auto least = std::min_element(
          first, end, [&](const auto& a, const auto& b) { return loads[a.second.index()] < loads[b.second.index()]; });
      const Rank host = least->second;
      loads[host.index()] += signatures_.num_nodes_of(classes_.representatives[first->first]);
      hosts.push_back(host);
      first = end;
    }
  }
  host_of_npu_.reserve(num_npus());
  for (const auto its : classes_.of_npu) host_of_npu_.push_back(hosts[its]);
}

/// Numbers the classes of groups that a representative is a member of. Returns the first group of each.
std::vector<GroupId> Folding::choose_groups() {
  std::vector<GroupId> chosen;
  for (const GroupId group : tables_.all_groups()) {
    const auto next = static_cast<std::uint32_t>(chosen.size());
    if (communicator_of_class_.try_emplace(classes_.of_group[group.index()], next).second) chosen.push_back(group);
  }
  return chosen;
}

/// Returns with which use the members of some groups are in them, group by group. Collective.
std::vector<std::uint32_t> Folding::uses_of_members(std::span<const GroupId> chosen,
                                                    parallel::Communicator& world) const {
  const SignatureGraph& graph = signatures_.graph;
  std::vector<std::uint32_t> mine;
  for (const GroupId group : chosen)
    if (graph.group_blocks.rank_of(group.value()) == world.rank().index())
      for (const auto& member : graph.members_of(group.value())) mine.push_back(member.use);
  if (world.size() == 1) return mine;
  std::vector<std::size_t> counts;
  const auto all = world.all_gather(std::span<const std::uint32_t>(mine), &counts);
  std::vector<std::size_t> next(counts.size());  // of each rank
  for (std::size_t rank = 1; rank < next.size(); ++rank) next[rank] = next[rank - 1] + counts[rank - 1];
  std::vector<std::uint32_t> uses;
  for (const GroupId group : chosen) {
    auto& at = next[graph.group_blocks.rank_of(group.value())];
    const auto of_group = std::span(all).subspan(at, all_communicators_[group.index()].num_members(num_npus()));
    uses.insert(uses.end(), of_group.begin(), of_group.end());
    at += of_group.size();
  }
  return uses;
}

/// Chooses one communicator for each class of groups that a representative is a member of. Collective.
void Folding::choose_communicators(parallel::Communicator& world) {
  const std::vector<GroupId> chosen = choose_groups();
  const std::vector<std::uint32_t> uses = uses_of_members(chosen, world);
  auto use = uses.begin();
  for (const GroupId group : chosen) {
    const auto& spec = all_communicators_[group.index()];
    auto& representatives = representatives_.emplace_back();
    representatives.count = 0;
    std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t> number_of;  // by class and use
    for (std::uint32_t i = 0; i < spec.num_members(num_npus()); ++i) {
      const NpuId member = spec.member(i);
      const auto number = static_cast<std::uint32_t>(representatives.npus.size());
      const auto [found, added] = number_of.try_emplace({class_of(member), *use++}, number);
      if (added) representatives.npus.push_back(representative_of(member));
      representatives.of_member.push_back(found->second);
    }
    const auto next = static_cast<std::uint32_t>(communicators_.size());
    const NpuId host = representatives.npus[next % representatives.npus.size()];
    communicators_.push_back(
        {GroupId(next), spec.group, spec.dimensions, spec.custom, host_of_npu_[host.index()], &representatives});
  }
  groups_of_.resize(communicators_.size());
  for (const auto& spec : all_communicators_) {
    const auto found = communicator_of_class_.find(classes_.of_group[spec.id.index()]);
    ensure(found != communicator_of_class_.end(), "a group none of whose members represents its class");
    groups_of_[found->second].push_back(spec.id);
    ++representatives_[found->second].count;
  }
}

npu::FoldedNpu Folding::folded_npu(const npu::NpuSpec& npu) const {
  npu::FoldedNpu result;
  result.count = classes_.sizes[class_of(npu.id)];
  result.streams = &streams_.at(npu.program);
  if (replay_only_) return result;
  for (const auto& [peer, stream] : tables_.ends_of(class_of(npu.id)))
    result.ends.push_back({representative_of(NpuId(peer)), stream});
  for (std::size_t use = 0; use < npu.groups.size(); ++use) {
    // The communicator may be made of another group of the class, which is equivalent position by position.
    const auto communicator = communicator_of_class_.at(classes_.of_group[npu.groups[use].index()]);
    const auto position = tables_.positions_of(class_of(npu.id))[use];
    result.participants.push_back(representatives_[communicator].of_member[position]);
  }
  return result;
}

// What a divergence changes is later than its first completion. So those that end their arrivals before the least of
// these are true. The others may follow from a time that is wrong.
Assumptions Folding::assumptions_after(std::span<const communicator::Divergence> found) const {
  ensure(signatures_.graph.assumes_completing_together,
         "members of a collective that have one representative complete together");
  Time wrong_from = Time::max();
  for (const auto& divergence : found) wrong_from = std::min(wrong_from, divergence.first_completion);
  Assumptions result{signatures_.graph.divergences, num_wrong_ + 1};
  auto& [of_group, labels] = result.divergences;
  of_group.resize(all_communicators_.size());
  if (labels.empty()) labels.emplace_back();
  for (const auto& divergence : found) {
    if (divergence.last_arrival >= wrong_from) continue;
    const auto& groups = groups_of_[divergence.group.index()];  // of one class, so they have the same labels so far
    labels.push_back(finer(labels[of_group[groups.front().index()]], divergence.labels));
    for (const GroupId group : groups) of_group[group.index()] = static_cast<std::uint32_t>(labels.size() - 1);
  }
  return result;
}

std::vector<npu::NpuSpec> Folding::npus_to_compare() const {
  std::vector<char> compared(num_npus());
  for (const auto representative : classes_.representatives) compared[representative] = 1;
  for (const auto& stream : tables_.all_ends()) compared[stream.peer] = 1;
  for (const auto& spec : communicators_) {
    if (spec.group->members.empty()) compared.assign(compared.size(), 1);
    for (const NpuId member : spec.group->members) compared[member.index()] = 1;
  }
  std::vector<npu::NpuSpec> npus;
  for (const auto& npu : own_npus_.all)
    if (compared[npu.id.index()]) npus.push_back(npu);
  return npus;
}

std::string Folding::description(std::span<const EarlierClasses> earlier) const {
  const auto num_npus = this->num_npus();
  std::string text = fmt::format("folded: {} in ", counted(num_npus, "NPU"));
  for (const auto& before : earlier)
    text += fmt::format("{} to {}, then in ", counted(before.count, "class", "classes"), readable(before.end));
  text += counted(classes_.count(), "class", "classes");
  if (earlier.empty() && classes_.count() == num_npus)
    text = fmt::format("nothing to fold: {} in as many classes", counted(num_npus, "NPU"));
  text += fmt::format(": {}", counted(signatures_.counts.structures, "structure"));
  const auto add = [&](std::uint64_t count, std::string_view why) {
    if (count > 0) text += fmt::format("; {} {}", count, why);
  };
  add(signatures_.counts.noisy, "NPUs with compute times of their own (noise)");
  add(signatures_.counts.sharing, "NPUs that share a memory, first come, first served");
  add(signatures_.counts.by_speeds, "more by their compute speeds");
  add(signatures_.counts.by_routes, "more by the routes of their messages");
  add(classes_.by_members, "more by the members of their groups");
  add(classes_.by_position, "more by their positions in groups of different members");
  add(classes_.by_messages, "more by the NPUs that they exchange messages with");
  return text;
}

}  // namespace orrery::fold
