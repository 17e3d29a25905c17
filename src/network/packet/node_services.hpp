#pragma once

#include "node_events.hpp"
#include "packet_store.hpp"
#include "packet_system.hpp"
#include "ports/ports.hpp"
#include "switching/next_hops.hpp"
#include "transports/packet_user.hpp"

namespace orrery::network {

/// The base of the queues and the transport of one rank. All of it outlives them.
struct NodeServices {
  const PacketSystem& system;
  NodeEvents& events;
  PacketStore& packets;
  Ports& ports;
  NextHops& hops;
  PacketUser& user;
};

}  // namespace orrery::network
