#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <unordered_map>
#include <utility>
#include <vector>

#include "devices.hpp"
#include "uec_rules.hpp"
#include "uec_sender.hpp"
#include "uec_sink.hpp"

namespace orrery::network {

/// The hosts and the queues of switches of one rank with the transport of Ultra Ethernet (docs/packet-network.md, UEC).
/// PacketDevices calls it in place of its own rules. Port::frames has what goes before data: acknowledgements, credit
/// and trimmed packets.
class UecTransport {
 public:
  explicit UecTransport(PacketDevices& devices);
  ~UecTransport();

  // Hosts: uec_hosts.cpp.
  void send(const FlowRequest& request);
  void serve_nic(Port& port);
  bool has_work(const Port& port) const;
  /// Takes a packet that is at its destination, where it has come by this port.
  void receive(Port& in, std::uint32_t slot);
  void expire(const pdes::Event& event);

  // Queues: uec_queues.cpp.
  void admit(Port& out, std::uint32_t slot);
  void forward(Port& out, std::uint32_t slot);

  // Checkpoints: uec_checkpoint.cpp.
  void begin_saving();
  void serialize(std::uint32_t host, Archive& archive);
  void serialize(const Port& port, Archive& archive);

 private:
  enum Timer : std::uint16_t { retransmission, probing, pulling };
  /// What a port of a host has beside its Nic.
  struct Nic {
    std::deque<std::uint32_t> active;        ///< numbers of flows that may send, in turn
    std::uint32_t turn = 0;                  ///< of control packets and data
    bool is_pulling = false;                 ///< an event will give credit
    std::deque<std::uint64_t> pulled, idle;  ///< keys of sinks that get credit, and that get it when others want none
    std::deque<std::pair<Time, std::uint64_t>> over;  ///< sinks that may be forgotten some time after this
  };
  /// The data packet that a port of a switch sends, as long as it does.
  struct Service {
    Time until = Time::from_ps(-1);
    std::uint32_t size = 0;
  };

  Nic& nic(const Port& port) { return nics_[devices_.nic_of(port)]; }
  Port& port_of(std::uint32_t host, std::uint32_t number);
  UecSender* sender_of(std::uint32_t host, std::uint32_t flow);
  UecSink& sink_of(const Port& in, const Packet& packet);
  std::uint32_t put(const UecSender& sender, const UecSender::Next& next);
  bool send_next_data(Port& port);
  void send_control(std::uint32_t slot);
  void activate(UecSender& sender);
  void arm(UecSender& sender, UecTimer& timer, Timer which);
  void receive_data(Port& in, std::uint32_t slot);
  void receive_trimmed(UecSink& sink, std::uint32_t slot);
  void receive_control(std::uint32_t slot);
  void answer(std::uint32_t slot);
  void end(UecSink& sink, Port& in);
  void end(UecSender& sender);
  void time_out(UecSender& sender);
  void send_probe(UecSender& sender);
  void send_request(UecSender& sender);

  // Credit of receivers: uec_credit.cpp.
  void take_target(UecSink& sink, std::int32_t target);
  void begin_pulling(UecSink& sink);
  void pull(Port& port);
  void send_credit(UecSink& sink, std::int32_t units);

  void trim(Port& out, std::uint32_t slot);
  std::uint32_t take_last(Port& out);
  double draw(Port& out);

  PacketDevices& devices_;
  UecRun run_;
  std::vector<Nic> nics_;                                                  // [ports of hosts]
  std::vector<Service> services_;                                          // [ports]
  std::unordered_map<std::uint64_t, std::unique_ptr<UecSender>> senders_;  // by source and number
  std::unordered_map<std::uint64_t, UecSink> sinks_;                       // by source and number
  std::vector<std::pair<std::uint32_t, std::uint64_t>> saved_sinks_;  // hosts and keys, ascending, for a checkpoint
  std::vector<std::uint64_t> saved_senders_;                          // keys, ascending
};

}  // namespace orrery::network
