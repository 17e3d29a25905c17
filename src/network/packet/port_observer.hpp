#pragma once

#include <cstddef>
#include <cstdint>

#include "orrery/base/archive.hpp"
#include "orrery/pdes/event.hpp"

namespace orrery::network {

struct Packet;
struct PacketRecords;
struct Port;

/// An observer of the nodes of one rank: this class, which does nothing, a recorder, or fast-forward. Observers see
/// constant ports and packets.
class PortObserver {
 public:
  virtual ~PortObserver() = default;

  /// An event of a node is about to be handled.
  virtual void handles(const pdes::Event&) {}
  /// All events of a time are handled.
  virtual void settles() {}
  /// An event of kind `resumption` has come.
  virtual void resumes(const pdes::Event&) {}

  /// A packet is about to enter the queue of a port.
  virtual void enqueues(const Port&, const Packet&) {}
  /// A packet has left the queue of a port, which will send it.
  virtual void dequeued(const Port&, const Packet&) {}
  /// The last packet has left the queue of a port, which will not send it.
  virtual void took_last(const Port&) {}
  /// The packet at a place in the queue of a port has overtaken the packets before it.
  virtual void overtook(const Port&, std::size_t) {}
  /// A port begins to send a packet, until Port::free.
  virtual void transmits(const Port&, const Packet&) {}
  /// A port has counted an ECN mark.
  virtual void marked(const Port&) {}
  /// The peer of a port has begun a PFC pause, or ended it.
  virtual void paused(const Port&, bool) {}

  /// Adds what was recorded at a port, whose link has this number in the results.
  virtual void collect(const Port&, std::uint32_t, PacketRecords&) const {}
  /// Writes or reads what was recorded at a port.
  virtual void serialize(const Port&, Archive&) {}
};

}  // namespace orrery::network
