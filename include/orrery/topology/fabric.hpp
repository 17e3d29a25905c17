#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "orrery/base/ids.hpp"
#include "orrery/topology/topology.hpp"

namespace orrery::topology {

/// One way from a device to the next: a directed link.
using LinkId = Id<struct LinkTag, std::uint32_t>;

class Wiring;

/// A link, or what an oversubscribed switch has: the way through it, and behind that the links that lead from it, with
/// which it shares their latency.
enum class Part : std::uint8_t { link, core, behind_core };

/// The directed links of a topology and the ways that messages take over them. Every link belongs to an NPU: those that
/// leave it (Ring and Mesh: up, then down, of which a line of 2 has the first only; FullyConnected: to the others, by
/// distance; Switch: up to the switch), in a Switch the one that comes down to it, and to the first NPU of a line what
/// its oversubscribed Switch passes; the links between switches of a FatTree or Dragonfly are dealt to the NPUs of
/// these (docs/network.md). Links are numbered by dimension, then NPU. Links side by side (topology::Dimension::links)
/// are one.
///
/// A message goes through the differing dimensions one after the other, the lowest first; in a Ring the shorter way
/// round, upwards on a tie; around a failed link as topology::Links::hops counts.
class Fabric {
 public:
  /// Where a link is; what the functions below want to know, found once.
  struct Link {
    LinkId id;
    std::uint32_t dimension = 0;
    NpuId owner;
    std::uint32_t number = 0;  ///< among the owner's in this dimension
  };
  /// What a link joins: NPUs, or -1 - s for switch s of `switches`.
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
  ~Fabric();

  static constexpr std::uint64_t most_links = std::uint64_t{1} << 27U;

  std::uint32_t num_links() const { return num_links_; }
  /// Links of an NPU, in all dimensions.
  std::uint32_t links_per_npu() const { return per_npu_; }
  /// The k-th link of an NPU, of `links_per_npu`.
  LinkId link_of(NpuId npu, std::uint32_t k) const;
  /// The k with which `link_of` gives the link.
  std::uint32_t number_at_owner(const Link& link) const { return dimensions_[link.dimension].before + link.number; }
  Link find(LinkId link) const;
  Ends ends(const Link& link) const;
  /// By dimension, then line.
  std::vector<Switch> switches() const;

  /// The first link of the way from an NPU to another one. O(dimensions).
  LinkId first(NpuId from, NpuId to) const;
  /// The link after this one on the way to `to`; none if the message is there.
  std::optional<LinkId> next(const Link& link, NpuId to) const;

  /// Whether messages come to the link when they are there whole, however they are switched: it is faster than those
  /// that lead to it.
  bool takes_whole(const Link& link) const { return part(link) == Part::core; }
  Part part(const Link& link) const;
  /// Of the NPUs at its ends. A switch is as fast as it has to be, but for its core.
  Port port(const Link& link) const;
  /// Whether lines of the dimension have an oversubscribed switch.
  bool has_core(std::uint32_t d) const;
  const Topology& topology() const { return topology_; }

 private:
  struct PerDimension {
    std::uint64_t first = 0;  ///< link
    std::uint32_t per_npu = 0;
    std::uint32_t before = 0;              ///< links of an NPU in lower dimensions
    std::unique_ptr<const Wiring> wiring;  ///< none where lines have one NPU
    std::uint64_t first_switch = 0;
    std::uint32_t switches_per_line = 0;
  };
  LinkId first_of(std::uint32_t d, NpuId npu) const;
  NpuId moved(NpuId npu, std::uint32_t d, std::uint32_t coordinate) const;
  LinkId leaving(std::uint32_t d, NpuId from, std::uint32_t coordinate) const;
  std::uint32_t place_of(const Link& link) const { return topology_.coordinate(link.owner, link.dimension); }

  const Topology& topology_;
  std::vector<PerDimension> dimensions_;
  std::uint32_t num_links_ = 0, per_npu_ = 0;
};

}  // namespace orrery::topology
