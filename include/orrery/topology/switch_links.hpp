#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "orrery/topology/wiring.hpp"

namespace orrery::topology {

/// Factors of the bandwidth and the latency that a dimension gives the links of an NPU.
struct Port {
  double bandwidth = 1;
  double latency = 1;

  friend bool operator==(const Port&, const Port&) = default;
};

/// A switch of a dimension: its group, and its numbers among the switches of the group. An oversubscribed switch has
/// two, those of its input and its output.
struct SwitchPlace {
  std::uint32_t group = 0;
  std::vector<std::uint32_t> numbers = {};
};

/// Finds a switch by the name that results give it, as "router 3", in a dimension with this many groups. Throws Error
/// (bad_input) that lists the kinds of switches and their numbers.
SwitchPlace switch_named(const Wiring& wiring, std::uint32_t groups, std::string_view name);

/// The links between the switches of one dimension group that differ from their dimension, and the ways around those
/// that have failed. The core of an oversubscribed switch counts as a link of it.
class SwitchLinks {
 public:
  /// `links`: side by side, of which a failure takes one.
  SwitchLinks(std::shared_ptr<const Wiring> wiring, std::uint32_t links);

  /// Returns the links that join a switch with others, or two switches with each other, in both directions. O(links of
  /// the group).
  static std::vector<GroupLink> between(const Wiring& wiring, std::span<const SwitchPlace> switches);
  /// Multiplies the factors of links.
  void change(std::span<const GroupLink> links, const Port& factors);
  /// Takes one of those side by side from each of these links. Throws Error (bad_input) if the links that work then
  /// join no longer all positions of the group. O(links of the group).
  void fail(std::span<const GroupLink> links);

  /// Returns the factors of a link.
  Port port(GroupLink link) const;
  bool has_failed(GroupLink link) const;
  /// Returns whether any link has failed.
  bool has_failed() const { return !failed_.empty(); }
  /// Returns the smallest factor of latency; 1 at the most.
  double least_latency() const;

 private:
  using Key = std::pair<std::uint32_t, std::uint32_t>;
  static Key key(GroupLink link) { return {link.position, link.number}; }
  void require_joined() const;

  std::shared_ptr<const Wiring> wiring_;
  std::uint32_t side_by_side_;
  std::map<Key, Port> changed_;
  std::map<Key, std::uint32_t> lost_;  ///< links that have failed of those side by side
  std::set<Key> failed_;               ///< links that carry nothing
};

/// The ways of messages around the failed links between the switches of a group. A message takes its regular route
/// where all of it works, and otherwise a shortest one over links that work.
class SwitchDetours {
 public:
  /// Both must outlive it. O(switches with positions * links of the group).
  SwitchDetours(const Wiring& wiring, const SwitchLinks& links);

  /// Returns the link over which a message leaves a switch for a position. O(hops + links of the switch).
  GroupLink towards(Device at, std::uint32_t position) const;

 private:
  struct Leaving {
    GroupLink link;
    std::uint32_t to = 0;  ///< switch
  };
  bool works_regularly(Device at, std::uint32_t position) const;
  void add_distances_to(std::uint32_t home);

  const Wiring& wiring_;
  const SwitchLinks& links_;
  std::vector<std::vector<Leaving>> leaving_;         ///< [switches] links that work, to other switches
  std::vector<std::vector<std::uint16_t>> distance_;  ///< [switches with positions][switches]; empty for others
};

}  // namespace orrery::topology
