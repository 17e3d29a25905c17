#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "link_credits.hpp"
#include "orrery/base/archive.hpp"
#include "orrery/base/ids.hpp"
#include "orrery/base/slots.hpp"
#include "orrery/network/packet_graph.hpp"
#include "orrery/network/packet_router.hpp"
#include "orrery/network/packet_rules.hpp"
#include "orrery/pdes/scheduler.hpp"
#include "packet.hpp"
#include "port.hpp"
#include "recorder.hpp"

namespace orrery::network {

class FastForward;
class SwitchBuffers;
class UecTransport;

/// A message that a host is to send.
struct FlowRequest {
  FlowId id;
  std::uint64_t bytes = 0;
  std::uint32_t ports = 0;   ///< source port | destination port << 16
  std::uint64_t window = 0;  ///< bytes; 0: none
  Time round_trip;           ///< of a packet that is alone
};

/// Who uses the network. All calls come while an event of the host is handled.
class PacketUser {
 public:
  /// All bytes of a flow are at its destination.
  virtual void received(const FlowId& flow) = 0;
  /// All acknowledgements of a flow are at its source.
  virtual void acknowledged(const FlowId& flow) = 0;
  /// The destination of a flow is told that they are (PacketCompletion::acknowledged); again if the last
  /// acknowledgement is repeated (PacketRules::tells_again).
  virtual void told_acknowledged(const FlowId& flow) = 0;
  /// An event that the user has scheduled for a node.
  virtual void wake(const pdes::Event& event) = 0;

 protected:
  ~PacketUser() = default;
};

/// The hosts and switches of one rank, each a logical process (docs/packet-network.md). One event per packet and link
/// says that the packet is at the next node; it is sent when the transmission begins. The end of a transmission is an
/// event only if something waits for it.
class PacketDevices {
 public:
  /// What all ranks know. All of it outlives the devices.
  struct System {
    const PacketGraph& graph;
    const PacketRules& rules;
    const PacketRouter& router;
    std::span<const LinkFailure> failures;
  };
  struct Part {
    pdes::Scheduler& kernel;
    Rank here;
    std::span<const Rank> of_node;
    LpId first_process;  ///< the LP of node 0
    /// Equal times have the order in which their events were scheduled, as in ns-3. One rank only.
    bool in_scheduling_order = false;
    PacketRecording recording = {};
  };
  /// Kinds of events from this one on are the user's.
  static constexpr std::uint16_t first_kind_of_user = 16;

  PacketDevices(const System& system, const Part& part, PacketUser& user);
  ~PacketDevices();

  /// Schedules what is known before the run: failures of links.
  void start();
  /// Sends a message of a host of this rank. Called while an event of the host is handled.
  void send(const FlowRequest& request);
  /// Handles an event for a node of this rank.
  void serve(const pdes::Event& event);
  /// Ends a time: the kernel has handled all events of the nodes of this rank for this time.
  void settle();
  /// Fetches the packet and the port of an event from memory.
  void foresee(const pdes::Event& event) const;
  /// Keeps a packet that has come with an event of another rank, or what `pack` has returned.
  void unpack(pdes::Event& event, std::span<const std::byte> bytes);
  /// Returns an event of a node for a node, whose kind is the user's to set.
  pdes::Event event(std::uint32_t from, std::uint32_t to, Time time);

  /// Calls visit(port) for each port of the nodes of this rank, ascending.
  template <class Visit>
  void for_each_port(Visit visit) const {
    for (const Port& port : ports_)
      if (part_.of_node[port.node] == part_.here) visit(port);
  }
  /// Adds what is recorded of the ports of this rank. number_of(port) is the number of the link in the results.
  void collect(const std::function<std::uint32_t(const Port&)>& number_of, PacketRecords& records) const;
  /// Returns what is not as it must be when no event is left: packets that are nowhere, or bytes that count in a buffer
  /// and are not there. Empty if all is well.
  std::string find_leak() const;
  /// Returns which packets wait at nodes of this rank when no event is left: all of them wait for credit.
  std::vector<CreditWait> credit_waits() const;
  bool is_here(std::uint32_t node) const { return part_.of_node[node] == part_.here; }

  // For checkpoints: checkpoint.cpp.
  /// Finds which messages under way are for which host, for `serialize` to write. O(messages).
  void begin_saving();
  /// Returns what `unpack` needs to know of a pending event of a node of this rank; empty if that is nothing.
  std::vector<std::byte> pack(const pdes::Event& event) const;
  /// Writes the state of a node of this rank, or reads it.
  void serialize(std::uint32_t node, Archive& archive);

 private:
  friend class FastForward;   // takes events of nodes back and handles them later
  friend class NetworkParts;  // follows the paths of flows
  friend class PortStates;    // compares what ports, flows and packets are
  friend class UecTransport;  // the hosts and queues of that transport
  class Timers;
  using PacketBytes = std::vector<std::byte>;
  enum Kind : std::uint16_t {
    arrival,
    transmission_end,
    wake,
    timer,
    link_failure,
    notice,
    uec_timer,
    credit,
    going_on
  };
  /// What a node has beside its ports, and the numbers of its first port and, if it is a host, of the NIC of that port.
  struct NodeState {
    std::size_t first_port = 0, first_nic = 0;
    std::int64_t shared_size = 0;   ///< of a switch's buffer, without what ports have of their own
    std::int64_t shared = 0;        ///< in use
    std::uint64_t num_choices = 0;  ///< of next hops, in turn or by a draw
    std::uint64_t num_events = 0;   ///< that it has caused
  };

  Port& port(std::uint32_t node, std::uint32_t number) { return ports_[nodes_[node].first_port + number]; }
  std::size_t index_of(const Port& port) const { return nodes_[port.node].first_port + port.number; }
  std::size_t nic_of(const Port& port) const { return nodes_[port.node].first_nic + port.number; }
  Nic& nic(const Port& port) { return nics_[nic_of(port)]; }
  bool is_host(const Port& port) const { return system_.graph.node(port.node).is_host; }
  Time now() const { return fast_forward_time_ != nullptr ? *fast_forward_time_ : part_.kernel.now(); }
  void handle(const pdes::Event& event);
  /// Sends an event to a node of any rank, or keeps it for a part of the network that catches up.
  void send_on(Rank to, const pdes::Event& event, std::span<const std::byte> more = {}) {
    if (fast_forward_time_ == nullptr || !is_kept(event)) [[likely]]
      part_.kernel.send(to, event, more);
  }
  bool is_kept(const pdes::Event& event);
  void add_ports(std::uint32_t node, const SwitchBuffers& buffers);

  // Ports: devices.cpp.
  void kick(Port& port);
  void begin_next(Port& port);
  void transmit(Port& port, std::uint32_t slot);
  void hand_over(Port& port, std::uint32_t slot, Time there);
  void expect_end(Port& port);
  bool has_work(Port& port);
  void arrive(std::uint32_t node, std::uint32_t number, std::uint32_t slot);
  void fail_link(Port& port);
  void drop(Port& port, std::uint32_t slot);
  void enqueue(Port& port, std::uint32_t slot);
  std::uint32_t dequeue(Port& port);
  Port* next_port(std::uint32_t node, const Packet& packet);
  Port& first_port(const FlowRequest& request);
  void require_way(const FlowId& flow) const;

  // Credits: credits.cpp.
  bool has_next(Port& port, PacketQueue& queue) { return !queue.empty() && (!credits_ || find_covered(port, queue)); }
  bool find_covered(Port& port, PacketQueue& queue);
  bool may_begin(const Port& port, const Flow& flow);
  std::uint8_t channel_for(const Port& out, const Packet& packet) const;
  void spend_credit(Port& port, Packet& packet);
  void hold(const Port& in, const Packet& packet);
  void release(std::uint32_t node, const Packet& packet);
  void return_credit(const Port& in, const Packet& packet);
  void take_credit(const pdes::Event& event);
  void forward_on_credit(Port& out, std::uint32_t slot);
  std::string find_credit_leak() const;

  // Choice of next hops by packet: route_choice.cpp.
  Port* next_hop(std::uint32_t node, Packet& packet);
  Port* detour(std::uint32_t node, Packet& packet);
  Port* least_queue(std::uint32_t node, std::span<const std::uint16_t> ports);

  // Switches: switching.cpp.
  void admit(Port& in, Port& out, std::uint32_t slot);
  void forward(Port& out, std::uint32_t slot);
  void mark(Port& out, Packet& packet);
  void append_telemetry(const Port& out, Packet& packet);
  void send_frame(Port& port, Packet::Kind kind);
  std::int64_t threshold(const Port& port) const;

  // What is lost and sent again: recovery.cpp.
  void receive_selectively(std::uint32_t slot);
  void repeat_answer(std::uint32_t slot);
  std::uint64_t take_acknowledgement(Flow& flow, const Packet& packet);
  void expect_news(Flow& flow);
  Time timeout_of(const Flow& flow) const;
  void end_wait(Flow& flow);
  void send_again(Flow& flow);
  void lose(Flow& flow);
  std::uint32_t num_links_to(const Flow& flow) const;

  // Hosts: nic.cpp.
  void serve_nic(Port& port);
  Flow* next_flow(const Port& port, Nic& there);
  void send_next_packet(Port& port, Nic& nic, Flow& flow);
  void wake_later(Port& port, Nic& nic);
  void wake_at(Port& port, Nic& nic, Time time);
  void receive_data(std::uint32_t slot);
  void end_reception(std::uint32_t at, const Packet& packet);
  void answer(std::uint32_t slot, std::uint64_t expected, bool is_last, Packet::Kind kind);
  void receive_acknowledgement(std::uint32_t slot);
  void heed(Flow& flow, Port& port, const Packet& packet, std::uint64_t num_new);
  void expire(const pdes::Event& event);
  void start_timer(Flow& flow, std::uint32_t number, Time delay);
  std::uint32_t reception_of(Packet& packet);
  void free_packet(std::uint32_t slot);
  Flow* sender_of(const Packet& packet);

  PacketBytes bytes_of(std::uint32_t slot) const;
  std::uint32_t put_packet(std::span<const std::byte> bytes);
  void unpack_timer(pdes::Event& event, std::span<const std::byte> bytes);
  Flow& restored_flow(const FlowId& id);
  void serialize(PacketQueue& queue, Archive& archive);
  void serialize(Port& port, Archive& archive);
  void serialize(Nic& nic, std::uint32_t host, Archive& archive);
  void serialize(Flow& flow, Archive& archive);
  void serialize_receptions(std::uint32_t host, Archive& archive);

  System system_;
  Part part_;
  PacketUser& user_;
  std::vector<Port> ports_;
  std::vector<Nic> nics_;
  std::vector<NodeState> nodes_;
  Slots<Packet> packets_;
  Slots<Telemetry> telemetry_;
  FlowPool flows_;
  Receptions receptions_;
  std::unique_ptr<PacketRecorder> recorder_;   // null: nothing is recorded
  std::unique_ptr<UecTransport> uec_;          // null: another transport
  std::unique_ptr<LinkCredits> credits_;       // null: links need none
  std::unique_ptr<FastForward> fast_forward_;  // null: nothing is skipped
  const Time* fast_forward_time_ = nullptr;    // while it catches up; else null
};

}  // namespace orrery::network
