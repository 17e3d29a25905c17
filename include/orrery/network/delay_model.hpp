#pragma once

#include <cstdint>

#include "orrery/base/ids.hpp"
#include "orrery/base/quantity.hpp"
#include "orrery/network/options.hpp"
#include "orrery/topology/topology.hpp"

namespace orrery::network {

/// How long a message takes on a topology if nothing else is under way (docs/model.md, 3 and 4).
class DelayModel {
 public:
  explicit DelayModel(topology::Topology topology, Rules rules = {});

  const topology::Topology& topology() const { return topology_; }
  const Rules& rules() const { return rules_; }
  Rounding rounding() const { return rules_.rounding; }

  /// A message of `size` bytes over `hops` links of dimension d, between ports of which `port` is the slower: hops *
  /// latency + size / bandwidth. Through an oversubscribed Switch it has its share of what passes if all NPUs send.
  Time link_delay(std::uint32_t d, std::uint32_t hops, Bytes size, const topology::Port& port = {}) const;
  /// Point to point: at least one tick for a != b. With Rules::charge_every_dimension the message goes through the
  /// differing dimensions one after the other, stored and forwarded whole between them, the lowest dimension first: the
  /// sum of their link delays, each by the slower of the ports that a and b have in it. Else the link delay of the
  /// lowest differing dimension. O(dimensions).
  Time delay(NpuId a, NpuId b, Bytes size) const;
  /// The same inside a collective: it may be no time at all.
  Time path_delay(NpuId a, NpuId b, Bytes size) const;
  /// The way of a message from a to b: calls visit(d, hops, port) for each dimension that it is charged for, in order.
  template <class Visit>
  void for_each_leg(NpuId a, NpuId b, Visit visit) const {
    topology_.for_each_leg(a, b, [&](std::uint32_t d, std::uint32_t hops, const topology::Port& port) {
      visit(d, hops, port);
      return rules_.charge_every_dimension;
    });
  }
  /// The least delay between two different NPUs, whatever the size: at least one tick.
  Time minimum_delay() const { return minimum_delay_; }

 private:
  topology::Topology topology_;
  Rules rules_;
  Time minimum_delay_;
};

}  // namespace orrery::network
