// Connections of TCP in a checkpoint. Slots belong to one rank, and a run may continue on other ranks. Packets and
// timers therefore forget their slots, and find connections again by source and number.
#include <algorithm>

#include "tcp_connections.hpp"

namespace orrery::network {
namespace {

/// The connection of a pending timer.
struct TcpTimerOwner {
  std::uint32_t source = 0, number = 0;

  void serialize(Archive& archive) { archive(source, number); }
};

}  // namespace

std::vector<std::byte> TcpTransport::pack(const pdes::Event& event) const {
  if (event.kind != NodeEvents::flow_timer) return {};
  const auto names = [&](const Connection& connection) {
    TcpTimerOwner owner{connection.source, connection.number};
    Archive archive;
    archive(owner);
    return archive.written();
  };
  if (event.reserved == delayed_acknowledgement) return names(*incoming_[event.node]);
  return names(*outgoing_[event.node]);
}

void TcpTransport::unpack(pdes::Event& event, std::span<const std::byte> bytes) {
  TcpTimerOwner owner;
  Archive archive(bytes);
  archive(owner);
  event.node = event.reserved == delayed_acknowledgement ? accept(owner.source, owner.number).slot()
                                                         : open(owner.source, owner.number).slot();
}

void TcpTransport::begin_saving() {
  saved_.clear();
  for (const auto& connection : outgoing_)
    saved_.push_back({connection->source, connection->source, connection->number, connection->slot(), true});
  for (const auto& connection : incoming_)
    saved_.push_back({connection->destination, connection->source, connection->number, connection->slot(), false});
  std::ranges::sort(saved_);
}

void TcpTransport::serialize(std::uint32_t host, Archive& archive) {
  archive(num_opened_[services_.system.graph.host_number(host)]);
  std::vector<Saved> here;
  if (!archive.reads())
    std::ranges::copy(std::ranges::equal_range(saved_, host, {}, &Saved::host), std::back_inserter(here));
  archive(here);
  for (const Saved& saved : here) {
    if (!saved.is_outgoing) {
      Incoming& connection = archive.reads() ? accept(saved.source, saved.number) : *incoming_[saved.slot];
      connection.serialize(archive);
      continue;
    }
    Outgoing& connection = archive.reads() ? open(saved.source, saved.number) : *outgoing_[saved.slot];
    connection.serialize(archive);
    Pair& pair = pairs_[flow_key(connection.source, connection.destination)];
    if (archive.reads()) {
      const std::pair<std::uint32_t, std::uint32_t> entry{connection.place, connection.slot()};
      pair.slots.insert(std::ranges::lower_bound(pair.slots, entry), entry);
    }
    archive(pair.num_messages);
  }
}

}  // namespace orrery::network
