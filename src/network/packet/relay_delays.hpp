#pragma once

#include <span>
#include <vector>

#include "orrery/base/ids.hpp"
#include "orrery/network/packet_graph.hpp"
#include "orrery/network/packet_rules.hpp"

namespace orrery::network {

/// The least times from an event at a node of one rank to the event at a node of another rank that follows from it: the
/// delay of a link between them and what the shortest packet takes there. It is known when a transmission begins.
class RelayDelays {
 public:
  RelayDelays(const PacketGraph& graph, const PacketRules& rules, std::span<const Rank> of_node, int num_ranks);

  /// Returns max() if no packet goes from one rank to the other.
  Time between(Rank from, Rank to) const { return least_[from.index() * num_ranks_ + to.index()]; }
  /// Returns the least of all pairs of different ranks; max() if no packet goes from one rank to another.
  Time least_between() const;
  /// Returns the least of all links; max() if there are none.
  Time least() const { return of_all_; }

 private:
  std::size_t num_ranks_;
  std::vector<Time> least_;  // [ranks * ranks]
  Time of_all_ = Time::max();
};

}  // namespace orrery::network
