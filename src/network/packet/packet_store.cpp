#include "packet_store.hpp"

#include <cstring>

#include "orrery/base/error.hpp"

namespace orrery::network {

void PacketStore::write(std::uint32_t slot, Bytes& bytes) const {
  const Packet& packet = packets_[slot];
  std::memcpy(bytes.all.data(), &packet, sizeof packet);
  bytes.size = sizeof packet;
  if (packet.telemetry == no_slot) return;
  std::memcpy(bytes.all.data() + sizeof packet, &telemetry_[packet.telemetry], sizeof(Telemetry));
  bytes.size += sizeof(Telemetry);
}

std::vector<std::byte> PacketStore::saved(std::uint32_t slot) const {
  Bytes bytes;
  write(slot, bytes);
  Packet packet = packets_[slot];
  packet.sender = packet.receiver = packet.next = no_slot;
  std::memcpy(bytes.all.data(), &packet, sizeof packet);
  return {bytes.span().begin(), bytes.span().end()};
}

std::uint32_t PacketStore::put_bytes(std::span<const std::byte> bytes) {
  Packet packet;
  ensure(bytes.size() >= sizeof packet, "a packet of wrong size");
  std::memcpy(&packet, bytes.data(), sizeof packet);
  if (packet.telemetry != no_slot) {
    Telemetry telemetry;
    ensure(bytes.size() == sizeof packet + sizeof telemetry, "a packet without its telemetry");
    std::memcpy(&telemetry, bytes.data() + sizeof packet, sizeof telemetry);
    packet.telemetry = telemetry_.put(telemetry);
  }
  return packets_.put(packet);
}

void PacketStore::serialize(PacketQueue& queue, Archive& archive) {
  std::uint32_t count = queue.size, slot = queue.first;
  archive(count);
  for (std::uint32_t i = 0; i < count; ++i) {
    std::vector<std::byte> bytes;
    if (!archive.reads()) {
      bytes = saved(slot);
      slot = packets_[slot].next;
    }
    archive(bytes);
    if (archive.reads()) queue.push(*this, put_bytes(bytes));
  }
}

}  // namespace orrery::network
