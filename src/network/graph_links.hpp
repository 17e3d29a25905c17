#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "orrery/base/hosting.hpp"
#include "orrery/network/message.hpp"
#include "orrery/network/packet_graph.hpp"
#include "orrery/network/packet_router.hpp"
#include "orrery/topology/fabric.hpp"

namespace orrery::network {

/// The directed links of a graph that a user describes, with the routes of messages over them and their delays. NPU i
/// is host i. All links are of dimension 0, so a message that is cut through is so from end to end. The links that
/// leave a switch belong to an NPU that is nearest to it.
class GraphLinks {
 public:
  using Link = topology::Fabric::Link;

  /// The graph has a host for each NPU. O(hosts * links).
  GraphLinks(std::shared_ptr<const GivenGraph> given, std::uint32_t num_npus, Rounding rounding);
  GraphLinks(const GraphLinks&) = delete;
  GraphLinks& operator=(const GraphLinks&) = delete;

  std::uint32_t num_links() const { return static_cast<std::uint32_t>(links_.size()); }
  std::uint32_t links_of(NpuId npu) const { return first_of_[npu.index() + 1] - first_of_[npu.index()]; }
  topology::LinkId link_of(NpuId npu, std::uint32_t k) const { return by_owner_[first_of_[npu.index()] + k]; }
  std::uint32_t number_at_owner(const Link& link) const { return link.number; }
  Link find(topology::LinkId link) const { return links_[link.index()].link; }
  std::uint32_t process_of(topology::LinkId link) const { return link.value(); }
  topology::Fabric::Ends ends(const Link& link) const;

  // The next three throw Error (bad_input) if no links lead to the destination that work at the time.
  /// Returns the first link of a message that is at its source at a time.
  topology::LinkId first(const Message& message, Time time) const {
    return leaving(message.source.value(), message, time);
  }
  /// Returns the link after this one of a message that is at the end of this one at a time; none at its destination.
  std::optional<topology::LinkId> next(const Link& link, const Message& message, Time time) const;
  /// Returns the link that a message takes which is at the start of a link when this one fails.
  topology::LinkId instead_of(const Link& link, const Message& message, Time time) const {
    return leaving(links_[link.id.index()].from, message, time);
  }
  /// Returns no links: a graph says the route of a message.
  std::vector<std::pair<Link, std::uint32_t>> ways(const Link&, const Message&) const { return {}; }
  /// Returns when the link fails; max() if it does not.
  Time works_until(const Link& link) const { return links_[link.id.index()].works_until; }
  bool continues(const Link&, const Link&) const { return true; }
  bool takes_whole(const Link&) const { return false; }

  /// What the delays of a link depend on: its rate and its delay.
  using Kind = std::pair<std::uint64_t, Time>;
  Kind kind(const Link& link) const {
    const PacketGraph::Way way = way_of(link);
    return {way.rate, way.delay};
  }
  Time holds(const Link& link, Bytes size) const;
  /// Returns the time from the start of a message's service to the moment when it is at the next node: at least one
  /// tick.
  Time passes(const Link& link, Bytes size) const;
  Time least_pass() const;
  /// As ShapeLinks::least_pass_between_ranks. O(links).
  Time least_pass_between_ranks(const Hosting& hosting) const;

  // The links of a graph know no circuits.
  bool has_rates() const { return false; }
  Time holds(const Link& link, Bytes size, std::uint32_t) const { return holds(link, size); }
  Time passes(const Link& link, Bytes size, std::uint32_t) const { return passes(link, size); }
  template <class Free>
  Time drained(NpuId, std::uint32_t, std::uint32_t, Free) const {
    return {};
  }

  /// Routes change where links fail, so no message is known to stay on a rank.
  bool keep_within(std::span<const NpuId>, const std::function<bool(NpuId)>&) const { return false; }

 private:
  /// One direction of a link of the graph.
  struct Direction {
    Link link;
    std::uint32_t from = 0, to = 0;  ///< nodes
    std::uint32_t of_graph = 0;      ///< number of the link there
    Time works_until = Time::max();
  };
  topology::LinkId leaving(std::uint32_t node, const Message& message, Time time) const;
  void deal_links(std::uint32_t num_npus);
  PacketGraph::Way way_of(const Link& link) const;
  Time delay(const PacketGraph::Way& way, Bytes size) const;
  bool only_passes_neighbours(std::uint32_t node, std::span<const Rank> of_node) const;

  std::shared_ptr<const GivenGraph> given_;
  Rounding rounding_;
  PacketRouter router_;
  std::vector<std::uint32_t> first_port_;  // [nodes] number of its first port, which is that of the link that leaves it
  std::vector<Direction> links_;           // [2 * links of the graph]
  std::vector<topology::LinkId> by_owner_;  // [2 * links of the graph]
  std::vector<std::uint32_t> first_of_;     // [NPUs + 1] of by_owner_
  std::vector<NpuId> owner_of_;             // [nodes] to whom the links that leave it belong
};

}  // namespace orrery::network
