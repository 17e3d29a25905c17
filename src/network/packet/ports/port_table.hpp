#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "packet/packet_system.hpp"
#include "port.hpp"

namespace orrery::network {

class SwitchBuffers;

/// The buffer that the ports of a switch share.
struct SwitchBuffer {
  std::int64_t size = 0;  ///< bytes, without the reserve and the headroom of each port
  std::int64_t used = 0;  ///< bytes
};

/// The state of the ports and buffers of all nodes. Ports are numbered in the order of their nodes.
class PortTable {
 public:
  /// The system must outlive the table.
  explicit PortTable(const PacketSystem& system);

  std::size_t size() const { return ports_.size(); }
  Port& operator[](std::size_t index) { return ports_[index]; }
  const Port& operator[](std::size_t index) const { return ports_[index]; }
  Port& at(std::uint32_t node, std::uint32_t number) { return ports_[nodes_[node].first_port + number]; }
  const Port& at(std::uint32_t node, std::uint32_t number) const { return ports_[nodes_[node].first_port + number]; }
  /// Returns the number of a port among the ports of all nodes.
  std::size_t index_of(const Port& port) const { return nodes_[port.node].first_port + port.number; }
  /// Returns the number of a host's port among the ports of all hosts.
  std::size_t host_port_of(const Port& port) const { return nodes_[port.node].first_host_port + port.number; }
  std::size_t num_host_ports() const { return num_host_ports_; }
  bool is_host(const Port& port) const { return system_.graph.node(port.node).is_host; }
  SwitchBuffer& buffer(std::uint32_t node) { return nodes_[node].buffer; }
  const SwitchBuffer& buffer(std::uint32_t node) const { return nodes_[node].buffer; }
  /// Returns how many packets wait at ports. O(ports).
  std::size_t num_waiting() const;
  bool has_failed_link() const;

 protected:
  const PacketSystem& system() const { return system_; }

 private:
  struct Node {
    std::size_t first_port = 0, first_host_port = 0;
    SwitchBuffer buffer;
  };

  void add_node(std::uint32_t node, const SwitchBuffers& buffers);

  const PacketSystem& system_;
  std::vector<Port> ports_;
  std::vector<Node> nodes_;
  std::size_t num_host_ports_ = 0;
};

}  // namespace orrery::network
