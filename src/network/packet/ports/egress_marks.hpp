#pragma once

#include "packet/node_services.hpp"

namespace orrery::network {

/// Writes ECN marks and telemetry into packets that begin to leave a switch.
class EgressMarks {
 public:
  explicit EgressMarks(const NodeServices& services)
      : services_(services), uses_telemetry_(services.system.rules.control->uses_telemetry) {}

  /// Marks a packet, if the port marks any, by the bytes that the packet leaves behind.
  void mark(Port& out, Packet& packet) const {
    if (out.marking.is_on) mark_by_queue(out, packet);
  }
  /// Appends what the control of the flow wants to know of the port to a data packet.
  void append_telemetry(const Port& out, Packet& packet) const {
    if (uses_telemetry_ && packet.is_data()) append_hop(out, packet);
  }
  /// Returns the next draw of a port, between 0 and 1. It belongs to the seed, the port and the count of its draws, so
  /// that it does not depend on the number of ranks.
  double draw(Port& out) const;

 private:
  void mark_by_queue(Port& out, Packet& packet) const;
  void append_hop(const Port& out, Packet& packet) const;

  NodeServices services_;
  bool uses_telemetry_;
};

}  // namespace orrery::network
