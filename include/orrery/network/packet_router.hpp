#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <vector>

#include "orrery/base/error.hpp"
#include "orrery/base/ids.hpp"
#include "orrery/base/time.hpp"
#include "orrery/network/packet_graph.hpp"

namespace orrery::network {

/// Says over which port a packet leaves a node. Routes are shortest paths over the links that work at the time, of
/// which the hash of the packet's flow chooses. Alternatively a table or a function gives them.
class PacketRouter {
 public:
  /// The fields of a packet of which its flow's hash is taken.
  struct FlowKey {
    std::uint32_t source = 0, destination = 0;  ///< nodes
    std::uint32_t ports = 0;                    ///< source port | destination port << 16
  };
  static constexpr std::uint16_t no_way = 0xffff;

  /// Takes shortest paths, or the table of the rules. The failures are ascending in time; those at time 0 were never
  /// there. O(hosts * links).
  PacketRouter(const PacketGraph& graph, std::span<const LinkFailure> failures, const RouteRules& rules);
  /// Takes one port for each node and destination host: port_of(node, host number). O(nodes * hosts).
  PacketRouter(const PacketGraph& graph, const std::function<std::uint16_t(std::uint32_t, std::uint32_t)>& port_of);

  /// Returns the port over which a packet leaves a node at a time, `no_way` if there is none.
  std::uint16_t port(std::uint32_t node, const FlowKey& key, Time now) const;
  /// Returns the hash of a flow at a node, by which `port` chooses.
  static std::uint32_t hash(std::uint32_t node, const FlowKey& key);
  /// Returns the ports over which packets to a host may leave a node at a time.
  std::span<const std::uint16_t> ports(std::uint32_t node, std::uint32_t destination, Time now) const;

 private:
  /// The routes from some time on.
  struct Tables {
    Time since;
    std::vector<std::uint16_t> choice;                // [nodes * hosts] index of choices
    std::vector<std::vector<std::uint16_t>> choices;  // lists of ports
  };
  using Known = std::map<std::vector<std::uint16_t>, std::uint16_t>;

  void add_tables(Time since, const std::vector<bool>& is_down);
  void add_routes_to(std::uint32_t host, const std::vector<bool>& is_down, Tables& tables, Known& known) const;
  void add_given_routes(const std::vector<bool>& is_down, Tables& tables, Known& known) const;
  static std::uint16_t number_of(const std::vector<std::uint16_t>& ports, Tables& tables, Known& known);

  const PacketGraph& graph_;
  RouteRules rules_;
  std::vector<Tables> tables_;  // ascending in time
};

/// Returns the error (bad_input) that no links which work at a time lead from an NPU to one that it sends a message to.
Error unreachable(NpuId from, NpuId to, Time time);

}  // namespace orrery::network
