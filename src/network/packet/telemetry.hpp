#pragma once

#include <cstdint>

namespace orrery::network {

// The fields of telemetry in packets: times of 24 bits in ns, bytes of 20 bits in 128 B times a unit, queues of 17 bits
// in 80 B times it.

constexpr std::uint64_t telemetry_time(std::int64_t ns) { return static_cast<std::uint64_t>(ns) & 0xffffffU; }
constexpr std::uint64_t telemetry_bytes(std::uint64_t bytes, std::uint32_t unit) {
  return bytes / (std::uint64_t{128} * unit) & 0xfffffU;
}
constexpr std::uint64_t telemetry_queue(std::uint64_t bytes, std::uint32_t unit) {
  return bytes / (std::uint64_t{80} * unit) & 0x1ffffU;
}
constexpr std::uint64_t telemetry_time_difference(std::uint64_t later, std::uint64_t earlier) {
  return (later - earlier) & 0xffffffU;
}
constexpr std::uint64_t telemetry_bytes_difference(std::uint64_t later, std::uint64_t earlier) {
  return (later - earlier) & 0xfffffU;
}

}  // namespace orrery::network
