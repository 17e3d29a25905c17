#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "host_transport.hpp"
#include "tcp_hosts.hpp"
#include "tcp_packet.hpp"

namespace orrery::network {

/// The part that both ends of a connection share: its names, the way of its packets, and a timer.
class TcpTransport::Connection {
 public:
  Connection(const NodeServices& services, std::uint32_t slot) : services_(services), slot_(slot) {}

  std::uint32_t slot() const { return slot_; }
  /// Returns whether an event of the timer ends it. Otherwise the timer has moved or ended.
  bool is_over(const pdes::Event& event);

  std::uint32_t source = 0, destination = 0;  ///< nodes, in the direction of the data
  std::uint32_t number = 0;                   ///< among the connections of the source
  std::uint32_t ports = 0;                    ///< source port | destination port << 16, in the direction of the data
  std::uint32_t other_slot = no_slot;         ///< slot of the connection at its other end; no_slot: not known

 protected:
  ~Connection() = default;

  void set(std::uint32_t host, Timer which, Time due);
  void send_event(std::uint32_t host, Timer which, Time due, std::uint64_t detail);
  /// Lets a packet wait for a port of the host that sends it.
  void put(const Packet& packet, std::span<const std::uint64_t> words);
  void serialize_names(Archive& archive);

  const NodeServices& services_;

 private:
  /// A timer that moves later has no event until its old one comes, which then sends the next.
  struct Alarm {
    Time due = Time::max(), pending = Time::max();  ///< end of the timer, and time of its event
    std::uint64_t event = 0;                        ///< number of that event
  };

  std::uint32_t slot_;
  Port* out_ = nullptr;  // port by which its packets leave; null: not known yet
  Alarm alarm_;
};

/// A connection at the host that sends its data.
class TcpTransport::Outgoing final : public Connection, private TcpOutput {
 public:
  Outgoing(const NodeServices& services, std::uint32_t slot);

  /// Adds a message to the stream.
  void send(std::uint32_t flow, std::uint64_t bytes);
  void receive(const TcpAcknowledgement& acknowledgement);
  void establish(std::uint64_t window) { sender_.establish(window); }
  void expire();
  void wake() { sender_.wake(); }

  const TcpSender& sender() const { return sender_; }
  std::uint32_t place = 0;  ///< number of the connection among those of its pair of hosts
  void serialize(Archive& archive);

 private:
  /// A message that is not acknowledged, and the byte behind it.
  struct Message {
    std::uint64_t end = 0;
    std::uint32_t flow = 0;
  };

  Time now() const override { return services_.events.now(); }
  void send_syn() override;
  void send_handshake() override;
  void send_segment(std::uint64_t first, std::uint32_t length, bool has_cwr) override;
  void set_timer(Time due) override { set(source, retransmission, due); }
  void wake_soon() override;
  Packet packet(Packet::Kind kind, std::uint32_t size) const;

  TcpSender sender_;
  std::vector<Message> messages_;  // ascending, from `first_` on
  std::size_t first_ = 0;
};

/// A connection at the host that receives its data.
class TcpTransport::Incoming final : public Connection, private TcpReplies {
 public:
  Incoming(const NodeServices& services, std::uint32_t slot);

  void accept();
  /// Takes a segment, or the last packet of the handshake, and frees it.
  void receive(std::uint32_t slot);
  void expire() { receiver_.expire(*this); }
  void serialize(Archive& archive);

 private:
  using End = std::pair<std::uint64_t, std::uint32_t>;  // the byte behind a message, and its number

  Time now() const override { return services_.events.now(); }
  void acknowledge(std::uint64_t byte, std::uint64_t window, bool has_echo,
                   std::span<const std::uint64_t> blocks) override;
  void set_timer(Time due) override { set(destination, delayed_acknowledgement, due); }
  void deliver() override;
  void note_ends(const Packet& packet);
  void note_end(End end);
  void tell_user();
  Packet packet(std::uint32_t size) const;

  TcpReceiver receiver_;
  std::vector<End> ends_;  // ascending, of messages that are not there
};

}  // namespace orrery::network
