#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "orrery/base/archive.hpp"
#include "orrery/network/credit_waits.hpp"
#include "orrery/pdes/event.hpp"
#include "packet/packet.hpp"
#include "port.hpp"

namespace orrery::network {

/// A packet that a host may send next, which is made only if somebody asks for it.
class NextPacket {
 public:
  /// Returns its ends and its size.
  virtual Packet head() const = 0;

 protected:
  ~NextPacket() = default;
};

/// Decides which packets wait for ports, in which buffers, and which of them leave next. There is one discipline for
/// all nodes of a rank: shared buffers with PFC, credits, or queues that trim.
class QueueDiscipline {
 public:
  virtual ~QueueDiscipline() = default;

  /// Takes a packet that has come by `in` and leaves by `out` into a queue, or drops it.
  virtual void admit(Port& in, Port& out, std::uint32_t slot) = 0;
  /// Takes a packet that a switch has made of one that came by `in`, and does not drop it. Only switches that reduce
  /// make packets.
  virtual void admit_made(Port& in, Port& out, std::uint32_t slot) { admit(in, out, slot); }
  /// Sends the next packet in the queue of a switch's port, if it may leave. The port is free and not paused, and its
  /// queue is not empty.
  virtual void serve(Port& out) = 0;
  /// Handles a packet that has come by a port and does not wait: the node is its destination, or loses it.
  virtual void pass(const Port&, const Packet&) {}
  /// Tells that the link of a port has failed, and that its queue is empty.
  virtual void fail(Port&) {}
  /// Handles an event of kind `credit`.
  virtual void take_credit(const pdes::Event&) {}

  // For hosts.
  /// Sends a packet of a host by a port that is free.
  virtual void send(Port& out, std::uint32_t slot) = 0;
  /// Takes the first packet out of the queue of a port.
  virtual std::uint32_t take(Port& out) = 0;
  /// Returns whether a port may send a packet of a queue that is not empty, and puts that packet to the front.
  virtual bool may_send(Port&, PacketQueue&) { return true; }
  /// Returns whether a port may send a new packet.
  virtual bool may_send(const Port&, const NextPacket&) { return true; }

  /// Returns which packets of this rank wait for credit when no event is left.
  virtual std::vector<CreditWait> credit_waits() const { return {}; }
  /// Returns which bytes are counted in a buffer, and are not there, when no event is left. Empty if all is well.
  virtual std::string find_leak(bool has_waiting) const = 0;
  /// Writes or reads the state of a port.
  virtual void serialize(Port&, Archive&) {}
};

}  // namespace orrery::network
