#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "orrery/base/archive.hpp"
#include "orrery/base/slots.hpp"
#include "packet.hpp"

namespace orrery::network {

/// The packets of one rank, in queues and on links, with their telemetry. Events and queues name packets by slots.
class PacketStore {
 public:
  /// A packet as it travels between ranks.
  struct Bytes {
    std::array<std::byte, sizeof(Packet) + sizeof(Telemetry)> all;
    std::size_t size = 0;

    std::span<const std::byte> span() const { return {all.data(), size}; }
  };

  Packet& operator[](std::uint32_t slot) { return packets_[slot]; }
  const Packet& operator[](std::uint32_t slot) const { return packets_[slot]; }
  std::uint32_t put(const Packet& packet) { return packets_.put(packet); }
  void free(std::uint32_t slot) {
    if (packets_[slot].telemetry != no_slot) telemetry_.free(packets_[slot].telemetry);
    packets_.free(slot);
  }
  /// Returns how many packets there are.
  std::size_t size() const { return packets_.in_use(); }

  /// Returns the telemetry of a packet, to which switches append.
  Telemetry& telemetry_of(Packet& packet) {
    if (packet.telemetry == no_slot) packet.telemetry = telemetry_.put({});
    return telemetry_[packet.telemetry];
  }
  /// Returns the telemetry of a packet; null if it has none.
  const Telemetry* find_telemetry(const Packet& packet) const {
    return packet.telemetry == no_slot ? nullptr : &telemetry_[packet.telemetry];
  }

  /// Writes a packet for another rank.
  void write(std::uint32_t slot, Bytes& bytes) const;
  /// Returns a packet for a checkpoint, without the slots that it knows.
  std::vector<std::byte> saved(std::uint32_t slot) const;
  /// Keeps a packet that `write` or `saved` has written. Returns its slot.
  std::uint32_t put_bytes(std::span<const std::byte> bytes);
  /// Writes the packets of a queue, or reads them into an empty queue.
  void serialize(PacketQueue& queue, Archive& archive);

 private:
  Slots<Packet> packets_;
  Slots<Telemetry> telemetry_;
};

}  // namespace orrery::network
