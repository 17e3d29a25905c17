#pragma once

#include <cstdint>

#include "orrery/base/ids.hpp"
#include "orrery/base/quantity.hpp"
#include "orrery/network/options.hpp"
#include "orrery/topology/topology.hpp"

namespace orrery::network {

/// Computes how long a message takes on a topology if nothing else is under way (docs/model.md, 3 and 4). The
/// congestion-unaware network takes these delays for its own. The congestion-aware one takes them for its estimates.
class DelayModel {
 public:
  explicit DelayModel(topology::Topology topology, Rules rules = {});

  const topology::Topology& topology() const { return topology_; }
  const Rules& rules() const { return rules_; }
  Rounding rounding() const { return rules_.rounding; }

  /// Returns the delay of a message of `size` bytes over `hops` links of dimension d, between ports of which `port` is
  /// the slower: hops * latency + size / bandwidth. In an oversubscribed dimension the message has the share of
  /// bandwidth that it has if all NPUs send.
  Time link_delay(std::uint32_t d, std::uint32_t hops, Bytes size, const topology::Port& port = {}) const;
  /// Returns the delay of a message between two NPUs: at least one tick if they differ. With
  /// Rules::charge_every_dimension the message goes through the dimensions in which they differ one after the other,
  /// the lowest first, and is stored whole between them: the sum of their link delays, each by the slower of the ports
  /// that a and b have in the dimension. Else the link delay of the lowest such dimension. O(dimensions).
  Time delay(NpuId a, NpuId b, Bytes size) const;
  /// Returns the same for a message inside a collective, which may take no time at all.
  Time path_delay(NpuId a, NpuId b, Bytes size) const;
  /// Calls visit(d, hops, port) for each dimension that a message from a to b is charged for, in order.
  template <class Visit>
  void for_each_leg(NpuId a, NpuId b, Visit visit) const {
    topology_.for_each_leg(a, b, [&](std::uint32_t d, std::uint32_t hops, const topology::Port& port) {
      visit(d, hops, port);
      return rules_.charge_every_dimension;
    });
  }
  /// Returns a time that no message between two different NPUs takes less than, whatever its size: at least one tick.
  Time minimum_delay() const { return minimum_delay_; }

 private:
  topology::Topology topology_;
  Rules rules_;
  Time minimum_delay_;
};

}  // namespace orrery::network
