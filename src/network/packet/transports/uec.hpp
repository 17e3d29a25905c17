#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <unordered_map>
#include <utility>
#include <vector>

#include "host_transport.hpp"
#include "uec_rules.hpp"
#include "uec_sender.hpp"
#include "uec_sink.hpp"

namespace orrery::network {

/// The hosts of one rank with the transport of Ultra Ethernet (docs/packet-network.md, UEC). Each flow has a sender and
/// a sink, which know nothing of the network.
class UecTransport final : public HostTransport {
 public:
  /// The arguments must outlive it.
  UecTransport(const NodeServices& services, const UecRun& run);

  void send(const FlowRequest& request) override;
  std::uint32_t next(Port& port) override;
  bool has_work(const Port& port) const override;
  void receive(Port& in, std::uint32_t slot) override;
  void expire(const pdes::Event& event) override;
  std::size_t num_waiting() const override;
  void begin_saving() override;
  void serialize(std::uint32_t host, Archive& archive) override;

 private:
  enum Timer : std::uint16_t { retransmission, probing, pulling };
  /// The sending and the receiving side of a host's port.
  struct Nic {
    PacketQueue control;                     ///< acknowledgements and credit
    bool passes_next = true;                 ///< whether a packet that passes through the host goes next
    std::deque<std::uint32_t> active;        ///< numbers of flows that may send, in turn
    std::uint32_t turn = 0;                  ///< count of control packets since the last data packet
    bool is_pulling = false;                 ///< whether an event will give credit
    std::deque<std::uint64_t> pulled, idle;  ///< keys of sinks that get credit, and that get it when others want none
    std::deque<std::pair<Time, std::uint64_t>> over;  ///< sinks that may be forgotten, and when
  };

  Nic& nic(const Port& port) { return nics_[services_.ports.host_port_of(port)]; }
  UecSender* sender_of(std::uint32_t host, std::uint32_t flow);
  UecSink& sink_of(const Port& in, const Packet& packet);
  std::uint32_t put(const UecSender& sender, const UecSender::Next& next);
  std::uint32_t next_data(Port& port);
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

  NodeServices services_;
  const UecRun& run_;
  std::vector<Nic> nics_;                                                  // [ports of hosts]
  std::unordered_map<std::uint64_t, std::unique_ptr<UecSender>> senders_;  // by source and number
  std::unordered_map<std::uint64_t, UecSink> sinks_;                       // by source and number
  std::vector<std::pair<std::uint32_t, std::uint64_t>> saved_sinks_;  // hosts and keys, ascending, for a checkpoint
  std::vector<std::uint64_t> saved_senders_;                          // keys, ascending
};

}  // namespace orrery::network
