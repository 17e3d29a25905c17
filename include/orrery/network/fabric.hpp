#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "orrery/base/ids.hpp"
#include "orrery/topology/topology.hpp"

namespace orrery::network {

/// One way from a device to the next: a directed link.
using LinkId = Id<struct LinkTag, std::uint32_t>;

/// The directed links of a topology and the ways that messages take over them. Every link belongs to an NPU: those that
/// leave it (Ring and Mesh: up, then down, of which a line of 2 has the first only; FullyConnected: to the others, by
/// distance; Switch: up to the switch), and in a Switch the one that comes down to it. Links are numbered by dimension,
/// then NPU.
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
  /// What a link joins.
  struct Ends {
    std::optional<NpuId> from;  ///< none: a switch
    std::optional<NpuId> to;    ///< none: a switch
    topology::Port port;        ///< factors of what the dimension says
  };

  /// The topology must outlive it. Throws Error (bad_input) if there are more than `most_links` links.
  explicit Fabric(const topology::Topology& topology);

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

  /// The first link of the way from an NPU to another one. O(dimensions).
  LinkId first(NpuId from, NpuId to) const;
  /// The link after this one on the way to `to`; none if the message is there.
  std::optional<LinkId> next(const Link& link, NpuId to) const;

  /// What a message of this size holds the link for.
  Time holds(const Link& link, Bytes size) const;
  /// From the start of its service to the next device: at least one tick.
  Time passes(const Link& link, Bytes size) const;
  /// No message passes any link in less: at least one tick; max() if there are no links.
  Time least_pass() const;

 private:
  struct PerDimension {
    std::uint64_t first = 0;  ///< link
    std::uint32_t per_npu = 0;
    std::uint32_t before = 0;  ///< links of an NPU in lower dimensions
  };
  LinkId first_of(std::uint32_t d, NpuId npu) const;
  NpuId moved(NpuId npu, std::uint32_t d, std::uint32_t coordinate) const;
  LinkId leaving(std::uint32_t d, NpuId from, std::uint32_t coordinate) const;
  /// The NPU that a link that is no way up to a switch leads to.
  NpuId target(const Link& link) const;
  topology::Port port(const Link& link) const;

  const topology::Topology& topology_;
  std::vector<PerDimension> dimensions_;
  std::uint32_t num_links_ = 0, per_npu_ = 0;
};

}  // namespace orrery::network
