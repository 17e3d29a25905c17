#include "orrery/fold/representative_tables.hpp"

namespace orrery::fold {

RepresentativeTables::RepresentativeTables(std::span<const std::uint32_t> representatives, const OwnNpus& npus,
                                           const SignatureGraph& graph, parallel::Communicator& world) {
  std::vector<std::uint32_t> counts;                   // of groups and of streams, in turn
  for (const auto representative : representatives) {  // those of rank r are lower than those of rank r + 1
    if (!npus.has(NpuId(representative))) continue;
    const auto& groups = npus[NpuId(representative)].groups;
    const auto ends = graph.streams_of(representative);
    const auto memberships = graph.memberships_of(representative);
    groups_.insert(groups_.end(), groups.begin(), groups.end());
    ends_.insert(ends_.end(), ends.begin(), ends.end());
    for (std::size_t use = 0; use < groups.size() && use < memberships.size(); ++use)
      positions_.push_back(memberships[use].position);
    counts.insert(counts.end(), {static_cast<std::uint32_t>(groups.size()), static_cast<std::uint32_t>(ends.size())});
  }
  groups_ = world.all_gather(std::span<const GroupId>(groups_));
  positions_ = world.all_gather(std::span<const std::uint32_t>(positions_));
  ends_ = world.all_gather(std::span<const SignatureGraph::StreamEnd>(ends_));
  counts = world.all_gather(std::span<const std::uint32_t>(counts));
  for (std::size_t i = 0; i < counts.size(); i += 2) {
    first_group_.push_back(first_group_.back() + counts[i]);
    first_end_.push_back(first_end_.back() + counts[i + 1]);
  }
}

}  // namespace orrery::fold
