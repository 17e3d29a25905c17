#include "packet_store.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "orrery/base/error.hpp"

namespace orrery::network {

void PacketStore::free_more(const Packet& packet) {
  if ((packet.flags & Packet::has_words) != 0) return words_.free(packet.telemetry);
  telemetry_.free(packet.telemetry);
}

void PacketStore::attach(Packet& packet, std::span<const std::uint64_t> words) {
  Words attached;
  if (words.size() <= attached.few.size()) {
    std::ranges::copy(words, attached.few.begin());
    attached.num_few = static_cast<std::uint32_t>(words.size());
  } else {
    attached.many.assign(words.begin(), words.end());
  }
  packet.telemetry = words_.put(std::move(attached));
  packet.flags |= Packet::has_words;
}

void PacketStore::write(std::uint32_t slot, Bytes& bytes) const {
  const Packet& packet = packets_[slot];
  std::memcpy(bytes.all.data(), &packet, sizeof packet);
  bytes.size = sizeof packet;
  if (packet.telemetry == no_slot) return;
  if ((packet.flags & Packet::has_words) != 0) {
    const auto words = std::as_bytes(words_of(packet));
    bytes.size += words.size();
    if (bytes.size > bytes.all.size()) {
      bytes.longer.resize(bytes.size);
      std::memcpy(bytes.longer.data(), &packet, sizeof packet);
    }
    std::byte* const begin = bytes.longer.empty() ? bytes.all.data() : bytes.longer.data();
    std::memcpy(begin + sizeof packet, words.data(), words.size());
    return;
  }
  std::memcpy(bytes.all.data() + sizeof packet, &telemetry_[packet.telemetry], sizeof(Telemetry));
  bytes.size += sizeof(Telemetry);
}

std::vector<std::byte> PacketStore::saved(std::uint32_t slot) const {
  Bytes bytes;
  write(slot, bytes);
  Packet packet = packets_[slot];
  packet.sender = packet.receiver = packet.next = no_slot;
  std::vector<std::byte> all(bytes.span().begin(), bytes.span().end());
  std::memcpy(all.data(), &packet, sizeof packet);
  return all;
}

std::uint32_t PacketStore::put_bytes(std::span<const std::byte> bytes) {
  Packet packet;
  ensure(bytes.size() >= sizeof packet, "a packet of wrong size");
  std::memcpy(&packet, bytes.data(), sizeof packet);
  if ((packet.flags & Packet::has_words) != 0) {
    const std::span<const std::byte> more = bytes.subspan(sizeof packet);
    std::vector<std::uint64_t> words(more.size() / sizeof(std::uint64_t));
    std::memcpy(words.data(), more.data(), words.size() * sizeof(std::uint64_t));
    attach(packet, words);
  } else if (packet.telemetry != no_slot) {
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
