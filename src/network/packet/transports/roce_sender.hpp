#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "packet/node_services.hpp"
#include "packet/ports/queue_discipline.hpp"
#include "roce_state.hpp"

namespace orrery::network {

/// The sending side of RoCE: hosts send packets of their flows in turn, as far as windows and rates let them, and send
/// again what is lost. The rules come from the hosts of the RoCE modules of ns-3 (docs/packet-network.md, Hosts).
class RoceSender {
 public:
  /// The arguments must outlive it.
  RoceSender(const NodeServices& services, QueueDiscipline& queues, RoceState& state)
      : services_(services), queues_(queues), state_(state) {}

  void send(const FlowRequest& request);
  std::uint32_t next(Port& port);
  bool has_work(const Port& port) const;
  void receive_acknowledgement(std::uint32_t slot);
  /// Handles the timer of a port.
  void wake(const pdes::Event& event);
  /// Handles a timer of a flow.
  void expire(const pdes::Event& event);

  std::vector<std::byte> pack(const pdes::Event& event) const;
  void unpack(pdes::Event& event, std::span<const std::byte> bytes);
  void serialize(Port& port, Archive& archive);

 private:
  /// The clock and the timers of a flow, for its congestion control.
  class Timers final : public FlowTimers {
   public:
    Timers(RoceSender& sender, Flow& flow) : sender_(sender), flow_(flow) {}

    Time now() const override { return sender_.services_.events.now(); }
    void start(std::uint32_t number, Time delay) override { sender_.start_timer(flow_, number, delay); }

   private:
    RoceSender& sender_;
    Flow& flow_;
  };
  class NextOfFlow;

  Nic& nic(const Port& port) { return state_.nics[services_.ports.host_port_of(port)]; }
  bool has_next(Port& port, PacketQueue& queue) { return !queue.empty() && queues_.may_send(port, queue); }
  Flow* next_flow(const Port& port, Nic& there);
  std::uint32_t make_packet(Nic& there, Flow& flow);
  void wake_later(Port& port, Nic& there);
  void wake_at(Port& port, Nic& there, Time time);
  void start_timer(Flow& flow, std::uint32_t number, Time delay);

  // Acknowledgements.
  Flow* sender_of(const Packet& packet);
  std::uint64_t take_acknowledgement(Flow& flow, const Packet& packet);
  void take_selectively(Flow& flow, const Packet& packet);
  void inform_control(Flow& flow, Port& port, const Packet& packet, std::uint64_t num_new);

  // Losses.
  void expect_news(Flow& flow);
  Time timeout_of(const Flow& flow) const;
  void end_wait(Flow& flow);
  void send_again(Flow& flow);

  Flow& restored_flow(const FlowId& id);
  void serialize(Flow& flow, Archive& archive);

  NodeServices services_;
  QueueDiscipline& queues_;
  RoceState& state_;
};

}  // namespace orrery::network
