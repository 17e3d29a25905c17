#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "orrery/base/archive.hpp"
#include "orrery/base/ids.hpp"
#include "orrery/base/time.hpp"
#include "orrery/pdes/event.hpp"
#include "orrery/pdes/scheduler.hpp"
#include "packet_system.hpp"

namespace orrery::network {

/// The clock of the nodes of one rank and the events that they send. Each node numbers its own events, so that the
/// order of simultaneous events does not depend on the number of ranks.
class NodeEvents {
 public:
  /// Kinds of events of nodes. `reserved` is the number of a port, except for the timers of flows.
  enum Kind : std::uint16_t {
    arrival,           ///< packet `node` has come by a port
    transmission_end,  ///< port that is free again
    port_timer,        ///< timer of a host's port, which belongs to the transport
    flow_timer,        ///< timer of a flow, whose fields belong to the transport
    link_failure,      ///< link `node`, which fails
    notice,            ///< flow whose sender has all acknowledgements
    credit,            ///< bytes that a link may send, which belong to the queues
    resumption,        ///< part of the network that stops resting
    addition,          ///< packet `node`, to which a switch has added all contributions
  };
  /// First kind of event that belongs to the user of the network.
  static constexpr std::uint16_t first_kind_of_user = 16;

  NodeEvents(const PacketPart& part, std::uint32_t num_nodes)
      : part_(part), scheduler_(&part.kernel), num_caused_(num_nodes) {}

  Time now() const { return scheduler_->now(); }
  bool is_here(std::uint32_t node) const { return part_.of_node[node] == part_.here; }
  bool in_scheduling_order() const { return part_.in_scheduling_order; }
  /// Returns the node of an event.
  std::uint32_t node_of(const pdes::Event& event) const { return event.target.value() - part_.first_process.value(); }
  /// Returns whether the event is one of a node, and not of an NPU.
  bool is_of_node(const pdes::Event& event) const { return event.target >= part_.first_process; }

  /// Returns an event of a node for a node of any rank. The caller sets its kind.
  pdes::Event make(std::uint32_t from, std::uint32_t to, Time time) {
    return pdes::Event::make(time, pdes::Stage::server, LpId(part_.first_process.value() + from), num_caused_[from]++,
                             LpId(part_.first_process.value() + to));
  }
  /// Sends an event to a node of this rank.
  void send_here(const pdes::Event& event) { scheduler_->send(part_.here, event); }
  /// Sends an event to a node of any rank. `more` goes with it to another rank.
  void send(std::uint32_t to, const pdes::Event& event, std::span<const std::byte> more = {}) {
    scheduler_->send(part_.of_node[to], event, more);
  }

  pdes::Scheduler& kernel() const { return part_.kernel; }
  /// Takes the time from another scheduler and sends events to it, until `use_kernel`: a part of the network catches
  /// up.
  void use(pdes::Scheduler& scheduler) { scheduler_ = &scheduler; }
  void use_kernel() { scheduler_ = &part_.kernel; }
  void serialize(std::uint32_t node, Archive& archive) { archive(num_caused_[node]); }

 private:
  PacketPart part_;
  pdes::Scheduler* scheduler_;
  std::vector<std::uint64_t> num_caused_;  // [nodes] events
};

}  // namespace orrery::network
