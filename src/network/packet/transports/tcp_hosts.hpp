#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "host_transport.hpp"
#include "tcp_receiver.hpp"
#include "tcp_sender.hpp"

namespace orrery::network {

/// The hosts of one rank with TCP (docs/tcp.md). Each connection has a sender and a receiver, which know nothing of the
/// network. Their packets wait in the queues of the ports of hosts, which have no limit.
class TcpTransport final : public HostTransport {
 public:
  /// The arguments must outlive it.
  TcpTransport(const NodeServices& services, QueueDiscipline& queues);
  ~TcpTransport() override;

  void send(const FlowRequest& request) override;
  std::uint32_t next(Port& port) override { return port.queue.empty() ? no_slot : queues_.take(port); }
  bool has_work(const Port&) const override { return false; }
  void receive(Port& in, std::uint32_t slot) override;
  void expire(const pdes::Event& event) override;
  std::size_t num_waiting() const override { return 0; }
  std::vector<ConnectionRecord> connections() const override;
  void begin_saving() override;
  std::vector<std::byte> pack(const pdes::Event& event) const override;
  void unpack(pdes::Event& event, std::span<const std::byte> bytes) override;
  void serialize(std::uint32_t host, Archive& archive) override;

 private:
  /// Event::reserved of a timer.
  enum Timer : std::uint16_t { retransmission, waking, delayed_acknowledgement, late_syn };
  class Connection;
  class Outgoing;
  class Incoming;
  /// Connections from one host to another.
  struct Pair {
    std::uint32_t num_messages = 0;
    std::vector<std::pair<std::uint32_t, std::uint32_t>> slots;  ///< numbers of connections, and their slots
  };

  /// An end of a connection in a checkpoint, and the host that has it.
  struct Saved {
    std::uint32_t host = 0, source = 0, number = 0, slot = 0;
    bool is_outgoing = false;

    friend auto operator<=>(const Saved&, const Saved&) = default;
    void serialize(Archive& archive) { archive(host, source, number, is_outgoing); }
  };

  Outgoing& connection_for(const FlowRequest& request);
  Outgoing& open(std::uint32_t source, std::uint32_t number);
  Incoming& accept(std::uint32_t source, std::uint32_t number);
  Outgoing& sender_of(const Packet& packet);
  Incoming& receiver_of(const Packet& packet);
  void receive_syn(std::uint32_t slot);
  void receive_acknowledgement(std::uint32_t slot, bool is_syn);

  NodeServices services_;
  QueueDiscipline& queues_;
  std::vector<std::unique_ptr<Outgoing>> outgoing_;
  std::vector<std::unique_ptr<Incoming>> incoming_;
  std::unordered_map<std::uint64_t, std::uint32_t> senders_, receivers_;  // slots by source and number of connections
  std::unordered_map<std::uint64_t, Pair> pairs_;                         // by source and destination
  std::vector<std::uint32_t> num_opened_;                                 // [hosts] connections of each
  std::vector<Saved> saved_;                                              // ascending
};

}  // namespace orrery::network
