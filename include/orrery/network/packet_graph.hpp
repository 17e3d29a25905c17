#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "orrery/base/ids.hpp"
#include "orrery/base/quantity.hpp"
#include "orrery/base/time.hpp"

namespace orrery::network {

/// A network of hosts and switches, joined by links that carry packets both ways at a time. Nodes are numbered in the
/// order in which they are added, and so are the ports of a node: one for each of its links.
class PacketGraph {
 public:
  struct Node {
    bool is_host = false;
    Bytes buffer = {};  ///< buffer of a switch, which its ports share
  };
  /// One direction of a link.
  struct Way {
    std::uint64_t rate = 0;                   ///< bits per second
    Time delay;                               ///< time from the end of a transmission to the arrival
    std::optional<std::uint64_t> queue = {};  ///< bytes that may wait for it; none: as the rules say

    friend bool operator==(const Way&, const Way&) = default;
  };
  struct Link {
    std::uint32_t a = 0, b = 0;  ///< nodes
    std::uint64_t rate = 0;      ///< b/s from a to b, and from b to a unless `back` is given
    Time delay;                  ///< delay from a to b, and from b to a unless `back` is given
    std::uint32_t dimension = 0;
    bool turns_channel = false;               ///< whether packets change channels (topology::Wiring::turns_channel)
    std::optional<Way> back = {};             ///< way from b to a; none: as from a to b
    std::optional<std::uint64_t> queue = {};  ///< bytes that may wait from a to b (Way::queue)

    Way way_to(std::uint32_t node) const { return node == a && back ? *back : Way{rate, delay, queue}; }
  };
  /// One end of a link, from which packets leave for the other end.
  struct Port {
    std::uint32_t link = 0;
    std::uint32_t peer = 0;       ///< node
    std::uint32_t peer_port = 0;  ///< number among the ports of that node
  };

  /// Adds a node. Returns its number.
  std::uint32_t add_host();
  std::uint32_t add_switch(Bytes buffer);
  /// Adds a link between two nodes that exist. Returns its number.
  std::uint32_t add_link(const Link& link);
  /// Gives every switch a buffer of this size.
  void set_buffers(Bytes buffer);

  std::uint32_t num_nodes() const { return static_cast<std::uint32_t>(nodes_.size()); }
  std::uint32_t num_hosts() const { return static_cast<std::uint32_t>(hosts_.size()); }
  const Node& node(std::uint32_t node) const { return nodes_[node]; }
  std::span<const Link> links() const { return links_; }
  std::span<const Port> ports(std::uint32_t node) const { return ports_[node]; }
  const Link& link_of(const Port& port) const { return links_[port.link]; }
  /// Returns the way by which packets leave a port.
  Way way_of(const Port& port) const { return links_[port.link].way_to(port.peer); }
  /// Returns the way by which packets come to a port.
  Way way_into(const Port& port) const { return way_of(ports_[port.peer][port.peer_port]); }
  /// Returns the node of the h-th host.
  std::uint32_t host(std::uint32_t h) const { return hosts_[h]; }
  /// Returns the number of a node among the hosts. The node is a host.
  std::uint32_t host_number(std::uint32_t node) const { return host_numbers_[node]; }

 private:
  std::uint32_t add(const Node& node);

  std::vector<Node> nodes_;
  std::vector<Link> links_;
  std::vector<std::vector<Port>> ports_;  // [nodes]
  std::vector<std::uint32_t> hosts_, host_numbers_;
};

/// A link that stops working at a time.
struct LinkFailure {
  std::uint32_t link = 0;
  Time time;
};

/// Which of the paths with the fewest links packets take.
enum class GraphRoutes : std::uint8_t {
  widest,    ///< paths whose slowest link is the fastest
  shortest,  ///< all shortest paths, as in ns-3
};

/// A row of a table of routes: packets for a host may go from a node to this neighbour.
struct StaticRoute {
  std::uint32_t node = 0, destination = 0, next = 0;

  friend bool operator==(const StaticRoute&, const StaticRoute&) = default;
};

struct RouteRules {
  GraphRoutes paths = GraphRoutes::widest;
  /// If there are any, packets take these instead of shortest paths. They are ascending in node and destination.
  std::vector<StaticRoute> table = {};
  bool hosts_forward = false;  ///< whether packets pass hosts on their way to other hosts
};

/// A network that a user describes node by node (system.network.graph). Its hosts are its first nodes, and NPU i is
/// host i. Further hosts are idle, but may forward.
struct GivenGraph {
  PacketGraph graph;
  std::vector<LinkFailure> failures;  ///< ascending in time
  RouteRules routes;
  std::uint32_t num_placed = 0;  ///< hosts that a placement names; 0: none was given
};

/// Returns for each node how many ports the nodes before it have, which is the number of its first port among the ports
/// of all nodes.
std::vector<std::uint32_t> ports_before(const PacketGraph& graph);
/// Returns the number by which results name a node of a GivenGraph: h for host h, or -1 - s for switch s.
std::int64_t device_number(const PacketGraph& graph, std::uint32_t node);

/// Returns which rank has each node, where `of_hosts` has the ranks of the hosts. A switch, or a host without a rank,
/// is on the rank of most of its neighbours. O(links * longest path).
std::vector<Rank> place_nodes(const PacketGraph& graph, std::span<const Rank> of_hosts);
/// Returns which rank has each node, if ranks have hosts in blocks of equal size.
std::vector<Rank> place_nodes(const PacketGraph& graph, int num_ranks);

}  // namespace orrery::network
