#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "orrery/base/divisor.hpp"
#include "orrery/base/ids.hpp"
#include "orrery/topology/switch_links.hpp"
#include "orrery/topology/topology.hpp"

namespace orrery::topology {

/// A directed link: one way from a device to the next.
using LinkId = Id<struct LinkTag, std::uint32_t>;

/// The directed links of a topology and the routes of messages over them. A link belongs to the NPU that its shape
/// deals it to (docs/network.md). Links are numbered by dimension, then NPU. Links side by side
/// (topology::Dimension::links) are one.
///
/// A message goes through the dimensions in which its source and destination differ one after the other, the lowest
/// first, and around failed links as topology::Links::hops counts. A port that dimensions contend for (SharedPorts) is
/// a device of each NPU: a link leads from the NPU to it, one leads back, and the links of its dimensions begin and end
/// there. Links of ports come after those of all dimensions.
class Fabric {
 public:
  /// Where a link is. The functions below take it, so that it is found only once.
  struct Link {
    LinkId id;
    std::uint32_t dimension = 0;
    NpuId owner;
    std::uint32_t number = 0;  ///< among the links of the owner in this dimension
    bool is_of_port = false;   ///< it joins the owner with a port, whose lowest dimension is `dimension`
  };
  /// The devices that a link joins: NPUs, or -1 - s for switch s of `switches`.
  struct Ends {
    std::int64_t from = 0;
    std::int64_t to = 0;
  };
  struct Switch {
    std::uint32_t dimension = 0;
    std::string name;  ///< its kind, and which of its kind in the dimension: "switch 3"
  };

  /// The topology must outlive it. Throws Error (bad_input) if there are more than `most_links` links.
  explicit Fabric(const Topology& topology);

  static constexpr std::uint64_t most_links = std::uint64_t{1} << 27U;

  std::uint32_t num_links() const { return num_links_; }
  /// Returns the number of links of an NPU, in all dimensions.
  std::uint32_t links_per_npu() const { return per_npu_; }
  /// Returns the k-th of the `links_per_npu` links of an NPU.
  LinkId link_of(NpuId npu, std::uint32_t k) const;
  /// Returns the k with which `link_of` gives the link.
  std::uint32_t number_at_owner(const Link& link) const;
  Link find(LinkId link) const;
  Ends ends(const Link& link) const;
  /// Returns all switches, ordered by dimension and group.
  std::vector<Switch> switches() const;

  /// Returns the first link of the route from an NPU to another one. O(dimensions).
  LinkId first(NpuId from, NpuId to) const;
  /// Returns the link after this one on the route to `to`; none if this one leads there.
  std::optional<LinkId> next(const Link& link, NpuId to) const;

  /// Returns the links over which the switch that a link leaves may send a message for `to` instead, if the dimension's
  /// routing is adaptive. They have the owner of the link. O(links of the owner).
  std::vector<Link> alternatives(const Link& link, NpuId to) const;
  /// Returns how many links of its dimension a message for `to` takes that takes this one. O(hops).
  std::uint32_t links_left(const Link& link, NpuId to) const;

  /// Returns whether a message that comes over a link goes on over `next` in the same dimension.
  bool continues(const Link& link, const Link& next) const;
  /// Returns whether the link is there: some NPUs may have fewer links than others.
  bool exists(const Link& link) const;
  /// Returns the bandwidth of the link, ports and cores counted.
  Bandwidth bandwidth(const Link& link) const;
  /// Returns the port between the link and the NPU at which it begins or ends; null if there is none.
  const SharedPort* port_before(const Link& link) const;
  /// Returns whether a link begins to serve a message only when the message has come whole, with cut-through too. This
  /// holds for the core of a switch, which is faster than the links that lead to it.
  bool takes_whole(const Link& link) const { return role(link) == LinkRole::core; }
  LinkRole role(const Link& link) const;
  /// Returns the slower of the ports of the NPUs that the link joins. A switch slows no link but its core.
  Port port(const Link& link) const;
  /// Returns whether the groups of the dimension have an oversubscribed switch.
  bool has_core(std::uint32_t d) const;
  const Topology& topology() const { return topology_; }

 private:
  struct PerDimension {
    std::uint64_t first = 0;  ///< link
    std::uint32_t per_npu = 0;
    Divisor by_npu{1};         ///< per_npu; 1 if it is 0
    std::uint32_t before = 0;  ///< links of an NPU in lower dimensions
    std::uint64_t first_switch = 0;
    std::uint32_t switches_per_group = 0;
  };
  /// Returns the port that NPUs have links to in dimension d; null if it has none.
  const SharedPort* port_of(std::uint32_t d) const {
    const SharedPort* const port = topology_.ports().of(d);
    return port != nullptr && port->is_contended ? port : nullptr;
  }
  /// Returns the place of a port among `dimensions_`.
  std::size_t place_of(const SharedPort& port) const;
  LinkId link_of_port(const SharedPort& port, NpuId npu, std::uint32_t number) const;
  LinkId lowest_leaving(NpuId from, NpuId to) const;
  std::optional<std::uint32_t> lowest_between(NpuId from, NpuId to) const;
  bool has_links(std::uint32_t d) const { return topology_.dimension(d).size > 1; }
  LinkId first_of(std::uint32_t d, NpuId npu) const;
  NpuId moved(NpuId npu, std::uint32_t d, std::uint32_t position) const;
  LinkId leaving(std::uint32_t d, NpuId from, std::uint32_t position) const;
  GroupLink towards(std::uint32_t d, NpuId in_group, Device at, std::uint32_t position) const;
  NpuId first_of_group(NpuId npu, std::uint32_t d) const { return moved(npu, d, 0); }
  std::uint32_t position_of(const Link& link) const { return topology_.coordinate(link.owner, link.dimension); }

  const Topology& topology_;
  std::vector<PerDimension> dimensions_;  ///< and then those of the contended ports, in the order of SharedPorts
  std::vector<const SharedPort*> ports_;  ///< contended ports
  std::vector<std::map<NpuId, SwitchDetours>> detours_;  ///< [dimensions], by the first NPU of a group
  std::uint32_t num_links_ = 0, per_npu_ = 0;
};

}  // namespace orrery::topology
