#include "orrery/network/link_order.hpp"

#include <utility>

namespace orrery::network {

void LinkOrder::keep(std::uint32_t slot, EventPlace place) {
  if (of_slot_.size() <= slot) of_slot_.resize(slot + std::size_t{1});
  of_slot_[slot] = std::move(place);
}

EventPlace LinkOrder::offered(const pdes::Event& event, NpuId source) const {
  EventPlace its = at(event.node);
  if (!its.is_known()) return EventPlace::first_of(source).next(event.time, 0);
  return event.source() < first_link_ ? its : std::move(its).next(event.time, 0);
}

/// A message that has waited is handed on because of the end of the service before. One that comes when that service
/// ends has waited if its event comes before that end.
void LinkOrder::note_service(EventPlace& last, const pdes::Event& event, NpuId source, Time free, Time start) {
  EventPlace onward = offered(event, source);
  if (start > event.time || (free == event.time && last.is_known())) {
    // The end of a service comes directly after what hands its message on.
    const EventPlace end = last.is_known() ? last.beside() : EventPlace();
    EventPlace after_end = end.next(start, 0);
    if (start > event.time || onward < after_end) onward = std::move(after_end);
  }
  last = onward;
  keep(event.node, std::move(onward));
}

std::vector<std::byte> LinkOrder::packed_receipt(const pdes::Event& receipt) const {
  const auto found = receipts_.find(receipt.order);
  return found == receipts_.end() ? std::vector<std::byte>() : packed_place(found->second);
}

EventPlace LinkOrder::take(const pdes::Event& event, bool has_message) {
  if (has_message) return event.node < of_slot_.size() ? std::exchange(of_slot_[event.node], {}) : EventPlace();
  const auto receipt = receipts_.extract(event.order);
  return receipt.empty() ? EventPlace() : receipt.mapped();
}

std::vector<std::byte> packed_place(EventPlace place) {
  Archive archive;
  archive(place);
  return archive.written();
}

}  // namespace orrery::network
