#pragma once

#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <utility>
#include <vector>

#include "orrery/base/archive.hpp"
#include "orrery/base/event_place.hpp"
#include "orrery/base/ids.hpp"
#include "orrery/base/time.hpp"
#include "orrery/network/message.hpp"
#include "orrery/pdes/event.hpp"

namespace orrery::network {

/// The places, among simultaneous events, of messages that are under way over links (Rules::orders_messages). A link
/// serves messages that come at one time in the order of these places. If no place is kept, no place is known.
class LinkOrder {
 public:
  /// `first_link`: LP of the first link, so that events of NPUs are told from those of links.
  explicit LinkOrder(LpId first_link) : first_link_(first_link) {}

  /// Keeps the place of what has sent the message in a slot, or of the event that brings it.
  void keep(std::uint32_t slot, EventPlace place);
  /// Forgets the place of a slot that takes another message.
  void forget(std::uint32_t slot) {
    if (slot < of_slot_.size()) of_slot_[slot] = {};
  }
  /// Gives a packet the place of the packet before it, whose message it is part of.
  void copy(std::uint32_t from, std::uint32_t to) {
    if (from < of_slot_.size()) keep(to, of_slot_[from]);
  }
  bool knows(std::uint32_t slot) const { return slot < of_slot_.size() && of_slot_[slot].is_known(); }
  EventPlace at(std::uint32_t slot) const { return slot < of_slot_.size() ? of_slot_[slot] : EventPlace(); }

  /// Returns the place of what hands a message of `source` on, if its service begins when `event` brings it to a link.
  EventPlace offered(const pdes::Event& event, NpuId source) const;
  /// Takes note of a service that begins at `start`, of the message of `event`. The link was free from `free` on.
  /// `last`: place of what handed on the message of the link's last service, which becomes that of this one.
  void note_service(EventPlace& last, const pdes::Event& event, NpuId source, Time free, Time start);

  /// Gives a receipt, for an NPU of this rank, the place of the message in a slot.
  void keep_receipt(const pdes::Event& receipt, std::uint32_t slot) { receipts_[receipt.order] = of_slot_[slot]; }
  void keep_receipt(const pdes::Event& receipt, EventPlace place) { receipts_[receipt.order] = std::move(place); }
  /// Returns the place of a receipt in bytes, for another rank or a checkpoint; empty if none is known.
  std::vector<std::byte> packed_receipt(const pdes::Event& receipt) const;
  /// Returns the place of an event by which the network tells an NPU of a message, and forgets it. `has_message`: the
  /// event brings the message, and is no receipt.
  EventPlace take(const pdes::Event& event, bool has_message);

 private:
  LpId first_link_;
  std::vector<EventPlace> of_slot_;                         // [slots] as far as places are known
  std::unordered_map<std::uint64_t, EventPlace> receipts_;  // by Event::order of receipts for NPUs of this rank
};

/// Returns the bytes of a place, for another rank or a checkpoint.
std::vector<std::byte> packed_place(EventPlace place);

}  // namespace orrery::network
