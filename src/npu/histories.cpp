#include "histories.hpp"

namespace orrery::npu {

bool Histories::confirm_instant(std::size_t index, const EventHistory& history) {
  if (instants_[index].history != history) return false;
  instants_[index].is_awaited = false;
  return true;
}

void Histories::replace_instant(std::size_t index, const EventHistory& history) {
  instants_.erase(instants_.begin() + static_cast<std::ptrdiff_t>(index));
  // If it would have been the first in store, others are so now.
  if (!is_in_store_ && !is_expected_) expect_stored_instants();
  if (!history.is_known()) return;
  // The event that has what is in store may be over when the access before ends.
  const bool is_over = store_.is_known() && store_ < history.cause();
  if (!store_.is_known()) store_ = history;
  instants_.push_back({is_over ? history : store_, true, 0, history});
}

/// Puts the ends that the NPU has in store into one event of their own.
void Histories::expect_stored_instants() {
  store_ = {};
  is_expected_ = false;
  for (const Instant& instant : instants_)
    if (instant.is_stored && (!store_.is_known() || instant.own < store_)) store_ = instant.own;
  for (Instant& instant : instants_)
    if (instant.is_stored) instant.history = store_;
}

}  // namespace orrery::npu
