#pragma once

#include <cstdint>
#include <map>

#include "orrery/topology/fabric.hpp"

namespace orrery::collective::test {

/// Counts the messages on each link of a topology. They take the routes of its Fabric.
class LinkCounts {
 public:
  /// The topology must outlive it.
  explicit LinkCounts(const topology::Topology& topology) : fabric_(topology) {}

  /// Counts a message.
  void add(NpuId from, NpuId to);
  /// Returns the messages on the busiest link that a message passes in dimension d, 1 at the least.
  std::uint64_t most(std::uint32_t d, NpuId from, NpuId to) const;

 private:
  template <class Visit>
  void for_each_link(NpuId from, NpuId to, Visit visit) const;

  topology::Fabric fabric_;
  std::map<topology::LinkId, std::uint64_t> counts_;
};

}  // namespace orrery::collective::test
