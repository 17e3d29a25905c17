#include "link_counts.hpp"

#include <algorithm>
#include <optional>

namespace orrery::collective::test {

/// Calls visit(link) for each link of the route but the cores of switches.
template <class Visit>
void LinkCounts::for_each_link(NpuId from, NpuId to, Visit visit) const {
  for (std::optional<topology::LinkId> id = fabric_.first(from, to); id;) {
    const topology::Fabric::Link link = fabric_.find(*id);
    if (fabric_.role(link) != topology::LinkRole::core) visit(link);
    id = fabric_.next(link, to);
  }
}

void LinkCounts::add(NpuId from, NpuId to) {
  for_each_link(from, to, [&](const topology::Fabric::Link& link) { ++counts_[link.id]; });
}

std::uint64_t LinkCounts::most(std::uint32_t d, NpuId from, NpuId to) const {
  std::uint64_t most = 1;
  for_each_link(from, to, [&](const topology::Fabric::Link& link) {
    if (const auto found = counts_.find(link.id); link.dimension == d && found != counts_.end())
      most = std::max(most, found->second);
  });
  return most;
}

}  // namespace orrery::collective::test
