#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "orrery/base/archive.hpp"
#include "orrery/base/time.hpp"
#include "orrery/network/tcp_rules.hpp"
#include "tcp_control.hpp"
#include "tcp_segments.hpp"

namespace orrery::network {

/// The way of a sender to its host: the clock, packets and timers.
class TcpOutput {
 public:
  virtual Time now() const = 0;
  virtual void send_syn() = 0;
  /// Sends the last packet of the handshake.
  virtual void send_handshake() = 0;
  /// Sends a segment. `has_cwr`: the receiver learns by it that the window was reduced.
  virtual void send_segment(std::uint64_t first, std::uint32_t length, bool has_cwr) = 0;
  /// Calls TcpSender::expire at a time. A timer that runs is replaced; max() stops it.
  virtual void set_timer(Time due) = 0;
  /// Calls TcpSender::wake in the smallest unit of time.
  virtual void wake_soon() = 0;

 protected:
  ~TcpOutput() = default;
};

/// An acknowledgement as it comes to the sender.
struct TcpAcknowledgement {
  std::uint64_t byte = 0;                      ///< first byte that has not come
  std::uint64_t window = 0;                    ///< bytes that the receiver offers from there on
  bool has_echo = false;                       ///< report of an ECN mark
  std::span<const std::uint64_t> blocks = {};  ///< begin and end of each range that has come
};

/// Counts of one connection.
struct TcpCounts {
  std::uint64_t segments = 0, repeated = 0, timeouts = 0;
  std::uint64_t greatest_window = 0;  ///< bytes
};

/// The sending side of a connection of TCP (docs/tcp.md). It numbers the bytes of its stream from 1 on, because the SYN
/// is byte 0.
class TcpSender {
 public:
  /// The rules and the output must outlive it.
  TcpSender(const TcpRules& rules, std::unique_ptr<TcpControl> control, TcpOutput& output);

  /// Adds bytes to the stream. The first call opens the connection.
  void offer(std::uint64_t bytes);
  void wake();
  /// Handles the SYN-ACK.
  void establish(std::uint64_t window);
  void receive(const TcpAcknowledgement& acknowledgement);
  /// Handles the end of the timer. After too many time-outs without news the sender gives up, and sets no timer.
  void expire();

  std::uint64_t unacknowledged() const { return segments_.unacknowledged(); }
  /// Returns the end of the stream as far as it is known.
  std::uint64_t tail() const { return tail_; }
  const TcpCounts& counts() const { return counts_; }
  Time round_trip() const { return trip_.smoothed; }
  Time timeout() const { return handshake_.is_connected ? trip_.timeout : handshake_.timeout; }
  void serialize(Archive& archive);

 private:
  enum class State : std::uint8_t { open, disorder, cwr, recovery, loss };
  enum class Echo : std::uint8_t { idle, marked, told };
  /// RFC 6298.
  struct RoundTrip {
    Time smoothed, variation;  ///< zero: no sample yet
    Time timeout = Time::from_ns(1'000'000'000);
    std::uint32_t num_backoffs = 0;  ///< time-outs since the last news
    bool is_running = false;         ///< whether the timer of the segments runs
    Time last_sent;                  ///< time of the last segment
  };
  /// RFC 6937.
  struct Reduction {
    std::uint64_t out = 0, delivered = 0, flight = 1;  ///< bytes
  };
  struct Mode {
    State state = State::open;
    std::uint32_t num_duplicates = 0;
    std::uint64_t recovery_point = 0;
    bool is_recovering = false, is_first_partial = true, repeated_came = false;
  };
  struct Marks {
    Echo state = Echo::idle;
    std::uint64_t echoed = 0, told = 0;  ///< last byte whose mark was taken, and first byte of the segment that told so
  };
  struct Handshake {
    bool is_begun = false, is_connected = false, is_repeated = false, wakes = false;
    Time sent;
    Time timeout;
  };

  // tcp_sender.cpp
  bool has_unsent() const { return tail_ > segments_.sent_end(); }
  std::uint64_t room() const;
  void send_syn();
  void send_pending();
  struct Next {
    enum class Kind : std::uint8_t { none, repeat, fresh } kind = Kind::none;
    std::uint64_t number = 0;  ///< segment to repeat
    std::uint64_t most = 0;    ///< bytes of a new segment that the receiver has room for
  };
  Next next_segment(bool with_unknown);
  void send_fresh(std::uint64_t most);
  void send_again(std::uint64_t number);
  void count_sent(std::uint64_t end, std::uint64_t length);
  void slow_down_after_idle();
  void take_sample(Time round_trip);
  Time computed_timeout() const;
  void restart();
  void take_news(bool restarts);
  void expire_data();

  // tcp_recovery.cpp
  void take_echo(const TcpAcknowledgement& acknowledgement, std::uint64_t before, std::uint64_t delivered);
  void process(std::uint64_t before, bool is_duplicate, std::uint64_t delivered);
  void take_partial(std::uint64_t segments, std::uint64_t delivered);
  void take_whole(std::uint64_t num_new, std::uint64_t segments, bool is_duplicate, std::uint32_t num_before);
  void take_duplicate(std::uint64_t delivered);
  void enter_recovery(std::uint64_t delivered);
  void enter_reduction(std::uint64_t delivered);
  void reduce(std::uint64_t delivered);
  void send_one();
  void inform(std::uint64_t segments);

  const TcpRules& rules_;
  std::unique_ptr<TcpControl> control_;
  TcpOutput& output_;
  TcpWindow window_;
  TcpSegments segments_;
  std::uint64_t tail_ = 1;
  std::uint64_t offered_ = 0, highest_ = 1;  // bytes that the receiver offers, as of this acknowledgement
  std::uint64_t rest_ = 0;                   // acknowledged bytes that are no whole segment yet
  RoundTrip trip_;
  Reduction prr_;
  Mode mode_;
  Marks marks_;
  Handshake handshake_;
  TcpCounts counts_;
};

}  // namespace orrery::network
