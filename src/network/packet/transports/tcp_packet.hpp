#pragma once

#include <cstdint>

#include "packet/packet.hpp"

namespace orrery::network {

/// Packet::flags.
namespace tcp_flags {
inline constexpr std::uint8_t syn = 1;   ///< SYN (a request), or SYN-ACK (an acknowledgement)
inline constexpr std::uint8_t echo = 2;  ///< ECE: the receiver has seen an ECN mark
inline constexpr std::uint8_t cwr = 4;   ///< CWR: the sender has reduced its window
}  // namespace tcp_flags

/// Bytes of the options of a SYN and of a SYN-ACK.
inline constexpr std::uint32_t syn_options = 8;

// A data packet has in Packet::flow the number of the message of its first byte. Packet::out_of_order says with which
// of its bytes that message ends, counted from 1; 0: not in this packet. The words of the packet name further messages
// that end in it: the end and the number of each. An acknowledgement has blocks as its words, and its window in
// Packet::stamp.

inline Time stamp_of_window(std::uint64_t window) { return Time::from_ps(static_cast<std::int64_t>(window)); }
inline std::uint64_t window_of(const Packet& packet) { return static_cast<std::uint64_t>(packet.stamp.ps()); }

}  // namespace orrery::network
