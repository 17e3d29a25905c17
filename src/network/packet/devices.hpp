#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "node_events.hpp"
#include "node_services.hpp"
#include "orrery/base/archive.hpp"
#include "orrery/network/credit_waits.hpp"
#include "orrery/network/flow_records.hpp"
#include "packet_store.hpp"
#include "packet_system.hpp"
#include "port_observer.hpp"
#include "ports/ports.hpp"
#include "reduction/reductions.hpp"
#include "switching/next_hops.hpp"
#include "switching/switching.hpp"
#include "transports/host_transport.hpp"
#include "transports/packet_user.hpp"

namespace orrery::network {

/// The hosts and switches of one rank, each of which is a logical process (docs/packet-network.md, *For developers*).
/// It makes the parts of the network as the rules say, and gives each event to the part that handles it.
class PacketDevices {
 public:
  /// The arguments must outlive it.
  PacketDevices(const PacketSystem& system, const PacketPart& part, PacketUser& user);

  /// Schedules the failures of links that are known before the run.
  void start();
  /// Sends a message of a host of this rank. Called while an event of the host is handled.
  void send(const FlowRequest& request) { transport_.hosts->send(request); }
  /// Begins an operation of a tree of switches at a host of this rank. Called as `send` is.
  void reduce(const ReductionRequest& request) { reductions_->begin(request); }
  /// Handles an event for a node of this rank.
  void serve(const pdes::Event& event) {
    observer_->handles(event);
    handle(event);
  }
  /// Ends a time: the kernel has handled all events of the nodes of this rank for this time.
  void settle() {
    switching_.settle();
    observer_->settles();
  }
  /// Fetches the packet and the port of an event from memory.
  void prefetch(const pdes::Event& event) const;
  /// Keeps a packet that has come with an event of another rank, or reads the bytes that `pack` has returned.
  void unpack(pdes::Event& event, std::span<const std::byte> bytes);
  /// Returns an event of a node for a node. The caller sets its kind, from NodeEvents::first_kind_of_user on.
  pdes::Event event(std::uint32_t from, std::uint32_t to, Time time) { return events_.make(from, to, time); }
  bool is_here(std::uint32_t node) const { return events_.is_here(node); }

  /// Calls visit(port) for each port of the nodes of this rank, ascending.
  template <class Visit>
  void for_each_port(Visit visit) const {
    for (std::size_t i = 0; i < ports_.size(); ++i)
      if (is_here(ports_[i].node)) visit(ports_[i]);
  }
  /// Adds the records of the ports of this rank. number_of(port) is the number of the link in the results.
  void collect(const std::function<std::uint32_t(const Port&)>& number_of, PacketRecords& records) const;
  /// Returns what is wrong when no event is left: packets that are nowhere, or bytes that count in a buffer and are not
  /// there. Empty if all is well.
  std::string find_leak() const;
  /// Returns which packets wait at nodes of this rank when no event is left: all of them wait for credit.
  std::vector<CreditWait> credit_waits() const { return transport_.queues->credit_waits(); }

  // For checkpoints.
  /// Finds which messages under way are for which host, for `serialize` to write. O(messages log messages).
  void begin_saving() { transport_.hosts->begin_saving(); }
  /// Returns what `unpack` needs to know of a pending event of a node of this rank; empty if that is nothing.
  std::vector<std::byte> pack(const pdes::Event& event) const;
  /// Writes the state of a node of this rank, or reads it.
  void serialize(std::uint32_t node, Archive& archive);

 private:
  std::unique_ptr<PortObserver> make_observer(const PacketPart& part);
  void handle(const pdes::Event& event);
  static bool has_packet(const pdes::Event& event) {
    return event.kind == NodeEvents::arrival || event.kind == NodeEvents::addition;
  }

  PacketSystem system_;
  NodeEvents events_;
  PacketStore packets_;
  Ports ports_;
  NextHops hops_;
  PacketUser& user_;
  TransportSide transport_;
  std::unique_ptr<Reductions> reductions_;  // null: no switch reduces
  PacketSwitching switching_;
  std::unique_ptr<PortObserver> observer_;
};

}  // namespace orrery::network
