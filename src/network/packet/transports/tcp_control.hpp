#pragma once

#include <cstdint>
#include <memory>

#include "orrery/base/archive.hpp"
#include "orrery/base/time.hpp"

namespace orrery::network {

/// The part of a connection of TCP that its congestion control sees and changes. All of it is in bytes.
struct TcpWindow {
  std::uint64_t cwnd = 0;
  std::uint64_t ssthresh = (std::uint64_t{1} << 32U) - 1;
  std::uint64_t next = 1;          ///< end of the segment that was sent last
  std::uint64_t high = 1;          ///< end of all that was sent
  std::uint64_t acknowledged = 0;  ///< last acknowledgement
  std::uint32_t mss = 0;

  std::uint64_t segments() const { return cwnd / mss; }
};

/// An acknowledgement as a congestion control sees it.
struct TcpFeedback {
  Time now;
  std::uint64_t segments = 0;  ///< segments that it counts for
  bool has_echo = false;       ///< whether the receiver reports an ECN mark
  Time round_trip;             ///< smoothed round trip; zero: not known
};

/// The congestion control of one connection.
class TcpControl {
 public:
  virtual ~TcpControl() = default;
  /// Returns whether its packets can carry ECN marks.
  virtual bool uses_marks() const { return false; }
  /// Raises the window after whole segments were acknowledged.
  virtual void increase(TcpWindow& window, std::uint64_t segments, Time now) = 0;
  /// Returns the slow-start threshold after a loss or a mark, where so many bytes were under way.
  virtual std::uint64_t reduced(const TcpWindow& window, std::uint64_t flight) = 0;
  virtual void acknowledge(TcpWindow&, const TcpFeedback&) {}
  /// Handles a time-out, after `reduced`.
  virtual void lose(const TcpWindow&, Time) {}
  /// Writes what it has kept, or reads it.
  virtual void serialize(Archive&) {}
};

/// Makes the DCTCP of TCP, which shares its name with that of RoCE.
std::unique_ptr<TcpControl> make_tcp_dctcp();

}  // namespace orrery::network
