#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "orrery/topology/graph_generator.hpp"

namespace orrery::topology {

/// Builds a network: servers first, then the switches between them.
class FabricBuilder {
 public:
  /// A port of a server.
  struct Port {
    std::uint32_t server = 0, number = 0;  ///< number among the ports of the server
    std::uint32_t node = 0;                ///< number of the node in the network
    std::optional<double> bytes_per_ns;
  };

  /// Adds the NPUs of all servers, and then their other devices. Without servers there are `capacity` lone hosts.
  FabricBuilder(const GraphParameters& parameters, std::uint64_t capacity);

  const std::vector<Port>& ports() const { return ports_; }
  std::uint32_t num_servers() const { return num_servers_; }

  std::uint32_t add_switch(std::string name);
  /// Adds `count` switches named "name.0", ... Returns the first one.
  std::uint32_t add_switches(std::string_view name, std::uint64_t count);
  /// Joins a port of a server to a switch with a link of the kind `host`.
  void attach(const Port& port, std::uint32_t to);
  /// Joins two nodes with links of a kind.
  void join(std::uint32_t a, std::uint32_t b, std::string_view kind, std::uint32_t count = 1);

  /// Joins all ports to switches that have `per_switch` places each, server by server. A server that has no more ports
  /// than a switch has places is at one switch: if it does not fit there any more, it begins at the next one. Refuses
  /// more servers than there are places for.
  void attach_all(std::uint32_t first, std::uint32_t num_switches, std::uint32_t per_switch);

  GeneratedGraph take() { return std::move(made_); }

 private:
  void add_server(const ServerPlan& plan, std::uint32_t& npu, std::uint32_t& device);
  std::uint32_t kind(std::string_view name, const LinkPhysics& physics);
  void add_link(std::uint32_t a, std::uint32_t b, std::uint32_t kind);

  const GraphParameters& parameters_;
  GeneratedGraph made_;
  std::vector<Port> ports_;
  std::uint32_t num_servers_ = 0;
  std::uint32_t num_machines_ = 0;
  using KindKey = std::pair<std::string, std::pair<double, double>>;
  std::map<KindKey, std::uint32_t> kinds_;
};

}  // namespace orrery::topology
