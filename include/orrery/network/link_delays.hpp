#pragma once

#include <vector>

#include "orrery/base/quantity.hpp"
#include "orrery/topology/fabric.hpp"

namespace orrery::network {

/// Computes how long a message holds each link of a fabric, and when it is behind the link (docs/network.md).
class LinkDelays {
 public:
  /// The fabric must outlive it.
  LinkDelays(const topology::Fabric& fabric, Rounding rounding);

  const topology::Fabric& fabric() const { return fabric_; }

  /// Returns the time for which a message of this size holds the link.
  Time holds(const topology::Fabric::Link& link, Bytes size) const;
  /// Returns the time from the start of a message's service to the moment when it is at the next device: at least one
  /// tick.
  Time passes(const topology::Fabric::Link& link, Bytes size) const;
  /// Returns a time that no message passes any link in less than: at least one tick; max() if there are no links.
  Time least_pass() const;
  /// Returns the same for the links of a dimension with more than one NPU.
  Time least_pass(std::uint32_t d) const;

 private:
  Time least_latency(std::uint32_t d) const;
  Time delay(std::uint32_t d, std::uint32_t hops, Bytes size, const topology::Port& port) const;

  const topology::Fabric& fabric_;
  Rounding rounding_;
  /// [num_dimensions] the latency of the core of an oversubscribed switch: a part of that of the link behind it
  std::vector<Time> core_latency_;
  /// [num_dimensions] the latency of the links of its port: a part of that of the links between switches and the port
  std::vector<Time> port_latency_;
};

}  // namespace orrery::network
