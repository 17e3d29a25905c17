#pragma once

#include <cstdint>

#include "orrery/base/time.hpp"

namespace orrery::network {

/// The rules of TCP, in addition to the rules of all transports (docs/tcp.md).
struct TcpRules {
  std::uint32_t mss = 1460;                         ///< bytes of payload of a full segment
  std::uint32_t header = 42;                        ///< bytes of each packet besides its payload: link 2, IP 20, TCP 20
  std::uint32_t initial_window = 10;                ///< segments
  std::uint32_t ack_segments = 2;                   ///< segments for each of which a receiver owes one acknowledgement
  Time ack_timeout = Time::from_ns(1'000'000);      ///< longest delay of an acknowledgement
  Time min_rto = Time::from_ns(200'000'000);        ///< least time-out of a sender
  Time granularity = Time::from_ns(1000);           ///< least share of the variation of round trips in a time-out
  Time syn_timeout = Time::from_ns(1'000'000'000);  ///< time after which a SYN is repeated
  std::uint64_t least_buffer = std::uint64_t{6} << 20U;  ///< bytes that a receiver offers at first
  std::uint64_t most_buffer = std::uint64_t{6} << 20U;   ///< bytes up to which a receiver raises them
  std::uint32_t connections = 1;                         ///< connections of each pair of hosts; 0: one for each message
  bool slow_start_after_idle = false;  ///< whether a sender that was idle for a time-out begins with the first window

  /// Returns the largest maximum segment size: a segment keeps its length in 16 bits.
  static constexpr std::uint32_t most_mss = 65'535;
  static constexpr std::uint32_t most_connections = 65'536;
  static constexpr std::uint32_t most_named = 1U << 30U;  ///< largest number of a connection that a flow can name
  static constexpr std::uint64_t most_window = std::uint64_t{65'535} << 14U;  ///< bytes that the header can offer

  friend bool operator==(const TcpRules&, const TcpRules&) = default;
};

}  // namespace orrery::network
