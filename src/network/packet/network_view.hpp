#pragma once

#include "node_events.hpp"
#include "packet_store.hpp"
#include "packet_system.hpp"
#include "ports/port_table.hpp"
#include "transports/roce_state.hpp"

namespace orrery::network {

/// The nodes of one rank and the flows of its hosts, as fast-forward and the division into parts see them. Nothing can
/// be changed through it.
struct NetworkView {
  const PacketSystem& system;
  const NodeEvents& events;
  const PacketStore& packets;
  const PortTable& ports;
  const RoceState& hosts;
};

/// The state that PortStates::advance moves to a later time. Nobody else gets it.
struct MovableNetwork {
  PacketStore& packets;
  PortTable& ports;
  RoceState& hosts;
};

}  // namespace orrery::network
