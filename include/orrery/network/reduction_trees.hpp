#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <utility>
#include <vector>

#include "orrery/network/packet_graph.hpp"
#include "orrery/network/packet_rules.hpp"

namespace orrery::network {

/// The trees of switches that reduce, as all ranks know them (docs/reduction.md). The leaves of a tree are hosts. A
/// place is a node of a tree. Operations of one order have numbers that all their hosts know, and never wait for an
/// operation with a higher number.
class ReductionTrees {
 public:
  static constexpr std::uint32_t none = ~std::uint32_t{0};

  struct Child {
    std::uint32_t place = none;
    std::uint32_t port = 0;  ///< number of the port that leads there
  };
  struct Place {
    std::uint32_t node = 0;
    std::uint32_t tree = 0;
    std::uint32_t queue = 0;      ///< queue in which the operations of this place wait
    std::uint32_t parent = none;  ///< place of the next node towards the root
    std::uint32_t port = 0;       ///< number of the port that leads to the parent
    std::uint32_t first_child = 0, num_children = 0;
  };
  /// What carries out operations by their numbers: a host for one tree, or a switch for the trees of one order.
  struct Queue {
    std::uint32_t node = 0;
    std::uint32_t at_a_time = 1;  ///< operations that it carries out at a time
  };
  /// The branches of a tree that a list spells out: each node with the next one towards the root.
  using Branches = std::map<std::uint32_t, std::uint32_t>;

  /// All of it must outlive the trees. Links that fail at time 0 are not there.
  ReductionTrees(const PacketGraph& graph, const ReductionRules& rules, std::span<const LinkFailure> failures);

  /// Adds the trees of a communicator: ReductionRules::trees of them. The root of the t-th one is the t-th switch by
  /// the greatest distance to a host and by number; branches are shortest paths by the lowest next nodes. Returns the
  /// number of the first tree. Throws Error (bad_input) if there are not so many switches from which links lead to all
  /// hosts, or if a link of a tree fails during the run. O(links) for each switch beside a host, and for each tree.
  std::uint32_t add_communicator(std::span<const std::uint32_t> hosts, std::uint32_t order);
  /// Adds a tree of order 0 for some hosts. Trees of one family are one tree for the switches and hosts in it. Throws
  /// Error (bad_input) as above, or if the branches are no tree.
  std::uint32_t add_tree(const Branches& branches, std::span<const std::uint32_t> hosts, std::uint32_t family);
  /// Gives queues their shares of operations. Call it once, after the last tree. Throws Error (bad_input) if a switch
  /// takes part in more trees than it may, or in trees of more orders than it has operations.
  void finish();

  const ReductionRules& rules() const { return rules_; }
  bool empty() const { return places_.empty(); }
  std::size_t num_trees() const { return hosts_.size(); }
  const Place& operator[](std::uint32_t place) const { return places_[place]; }
  std::span<const Child> children(const Place& place) const {
    return std::span(children_).subspan(place.first_child, place.num_children);
  }
  std::span<const Queue> queues() const { return queues_; }
  /// Returns the place of a host, which is one of the tree. O(log hosts).
  std::uint32_t place_of(std::uint32_t tree, std::uint32_t host) const { return hosts_[tree].at(host); }
  /// Returns the hosts of a tree with their places.
  const std::map<std::uint32_t, std::uint32_t>& hosts_of(std::uint32_t tree) const { return hosts_[tree]; }

 private:
  /// Whose trees a queue serves: those of an order at a switch, those of an order and a family at a host.
  struct QueueKey {
    std::uint32_t node = 0, order = 0;
    std::uint32_t family = none;  ///< family of a host's trees
    friend auto operator<=>(const QueueKey&, const QueueKey&) = default;
  };
  /// The root of a tree, and the nodes below each of its nodes, ascending.
  struct Below {
    std::uint32_t root = none;
    std::map<std::uint32_t, std::vector<std::uint32_t>> nodes;
  };
  using Distances = std::vector<std::uint32_t>;  // [nodes] links from a switch, over switches

  const Distances& distances_from(std::uint32_t node);
  std::vector<std::uint32_t> roots_for(std::span<const std::uint32_t> hosts);
  Branches branches_to(std::uint32_t root, std::span<const std::uint32_t> hosts);
  Below nodes_below(const Branches& branches, std::span<const std::uint32_t> hosts) const;
  std::uint32_t build(const Branches& branches, std::span<const std::uint32_t> hosts, std::uint32_t family,
                      std::uint32_t order);
  std::uint32_t port_to(std::uint32_t from, std::uint32_t to, std::uint32_t family) const;
  std::uint32_t queue_for(const QueueKey& key);

  const PacketGraph& graph_;
  const ReductionRules& rules_;
  std::vector<Time> fails_at_;  // [links]; max(): never
  std::map<std::uint32_t, Distances> distances_;
  std::vector<Place> places_;
  std::vector<Child> children_;
  std::vector<std::map<std::uint32_t, std::uint32_t>> hosts_;  // [trees] hosts and their places
  std::vector<Queue> queues_;
  std::map<QueueKey, std::uint32_t> queue_numbers_;
  std::map<std::uint32_t, std::vector<std::uint32_t>> families_at_;     // by switch, ascending
  std::map<std::vector<std::uint32_t>, std::uint32_t> first_families_;  // by hosts
  std::uint32_t num_families_ = 0;                                      ///< first number of a family that is not in use
};

}  // namespace orrery::network
