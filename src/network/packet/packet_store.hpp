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
    std::vector<std::byte> longer;  ///< all bytes if the array is too short for them

    std::span<const std::byte> span() const {
      return longer.empty() ? std::span<const std::byte>(all.data(), size) : std::span<const std::byte>(longer);
    }
  };

  Packet& operator[](std::uint32_t slot) { return packets_[slot]; }
  const Packet& operator[](std::uint32_t slot) const { return packets_[slot]; }
  std::uint32_t put(const Packet& packet) { return packets_.put(packet); }
  void free(std::uint32_t slot) {
    if (packets_[slot].telemetry != no_slot) free_more(packets_[slot]);
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

  /// Attaches words of the transport to a packet, which has no telemetry.
  void attach(Packet& packet, std::span<const std::uint64_t> words);
  /// Returns the words of a packet, until the next call of `attach`.
  std::span<const std::uint64_t> words_of(const Packet& packet) const {
    return (packet.flags & Packet::has_words) == 0 ? std::span<const std::uint64_t>() : words_[packet.telemetry].span();
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
  /// Words of a packet: mostly a few, and any number of them.
  struct Words {
    std::array<std::uint64_t, 8> few = {};
    std::uint32_t num_few = 0;
    std::vector<std::uint64_t> many;

    std::span<const std::uint64_t> span() const {
      return many.empty() ? std::span<const std::uint64_t>(few.data(), num_few) : std::span<const std::uint64_t>(many);
    }
  };

  void free_more(const Packet& packet);

  Slots<Packet> packets_;
  Slots<Telemetry> telemetry_;
  Slots<Words> words_;
};

}  // namespace orrery::network
