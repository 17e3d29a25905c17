#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "byte_ranges.hpp"
#include "orrery/base/archive.hpp"
#include "orrery/base/time.hpp"
#include "orrery/network/tcp_rules.hpp"

namespace orrery::network {

/// The way of a receiver to its host: the clock, acknowledgements and the timer.
class TcpReplies {
 public:
  virtual Time now() const = 0;
  /// Sends an acknowledgement of all bytes before `byte`. `blocks` are begins and ends of ranges beyond it.
  virtual void acknowledge(std::uint64_t byte, std::uint64_t window, bool has_echo,
                           std::span<const std::uint64_t> blocks) = 0;
  /// Calls TcpReceiver::expire at a time. A timer that runs is replaced; max() stops it.
  virtual void set_timer(Time due) = 0;
  /// All bytes before TcpReceiver::expected are there. The acknowledgement of the last of them has not been sent yet.
  virtual void deliver() = 0;

 protected:
  ~TcpReplies() = default;
};

/// A segment, or the last packet of the handshake, as it comes to the receiver.
struct TcpArrival {
  std::uint64_t first = 0;
  std::uint32_t length = 0;  ///< bytes; 0: the last packet of the handshake
  bool is_marked = false;    ///< ECN mark
};

/// The receiving side of a connection of TCP (docs/tcp.md).
class TcpReceiver {
 public:
  static constexpr std::size_t most_blocks = 4;

  /// The rules must outlive it.
  TcpReceiver(const TcpRules& rules, bool uses_marks);

  /// Returns the window that the SYN-ACK offers.
  std::uint64_t first_window() const;
  std::uint64_t expected() const { return expected_; }
  void receive(const TcpArrival& arrival, TcpReplies& replies);
  /// Handles the end of the timer.
  void expire(TcpReplies& replies) { answer(replies); }
  void serialize(Archive& archive);

 private:
  enum class Echo : std::uint8_t { idle, marked, sending };
  struct Block {
    std::uint64_t first = 0, second = 0;  ///< first byte, and the byte behind the last one
  };
  /// ECN (RFC 8257, section 3.2).
  struct Marks {
    Echo echo = Echo::idle;
    bool last_was_marked = false, is_delayed = false, has_prior = false;
    std::uint64_t furthest = 0;  ///< first byte of the furthest marked packet
    std::uint64_t prior = 0;     ///< first missing byte before the last packet
  };
  struct Tuning {
    std::uint64_t buffer = 0, round_begin = 1;  ///< bytes
    std::uint32_t shift = 0;
  };

  void mirror(const TcpArrival& arrival, TcpReplies& replies);
  void take(const TcpArrival& arrival, TcpReplies& replies);
  void answer(TcpReplies& replies);
  void answer(TcpReplies& replies, std::uint64_t byte, bool has_echo);
  void report(Block block);
  void tune();

  const TcpRules& rules_;
  bool uses_marks_, is_open_ = false, has_timer_ = false;
  std::uint32_t num_waiting_ = 0;               // segments that are not acknowledged
  std::uint64_t expected_ = 1;                  // first byte that has not come
  ByteRanges ahead_;                            // ranges that came beyond it
  std::array<Block, most_blocks> recent_ = {};  // blocks of acknowledgements
  std::uint32_t num_recent_ = 0;
  Marks marks_;
  Tuning tuning_;
};

}  // namespace orrery::network
