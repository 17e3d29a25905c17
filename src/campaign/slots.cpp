#include "slots.hpp"

#include <algorithm>
#include <utility>

namespace orrery::campaign {

Slots::Slots(const HostNumbers& numbers, const Draws& draws)
    : slot_of_(numbers.total(), none), is_bad_(numbers.total(), 0) {
  find_bad(numbers, draws);
  find_groups(numbers);
}

void Slots::find_bad(const HostNumbers& numbers, const Draws& draws) {
  const auto bad = static_cast<std::size_t>(numbers.total() * numbers.bad_fraction);
  if (bad == 0) return;
  std::vector<std::pair<std::uint64_t, std::uint32_t>> order;  // key, host
  for (std::uint32_t host = 0; host < numbers.total(); ++host) order.emplace_back(draws.bits(stream::bad, host), host);
  std::nth_element(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(bad) - 1, order.end());
  for (std::size_t i = 0; i < bad; ++i) is_bad_[order[i].second] = 1;
}

void Slots::find_groups(const HostNumbers& numbers) {
  std::uint32_t num_groups = static_cast<std::uint32_t>(numbers.groups.size());
  if (num_groups > 0) {
    group_of_.assign(numbers.total(), none);
    for (std::uint32_t g = 0; g < num_groups; ++g)
      for (const std::uint32_t host : numbers.groups[g]) group_of_[host] = g;
  } else if (numbers.group_size > 0) {
    for (std::uint32_t host = 0; host < numbers.total(); ++host) group_of_.push_back(host / numbers.group_size);
    num_groups = group_of_.back() + 1;
  }
  active_of_group_.assign(num_groups, 0);
}

std::vector<std::uint32_t> Slots::hosts_of_group(std::uint32_t k) const {
  std::uint32_t group = 0;
  for (;; ++group)
    if (active_of_group_[group] > 0 && k-- == 0) break;
  std::vector<std::uint32_t> hosts;
  for (const std::uint32_t host : slots_)
    if (host != none && group_of_[host] == group) hosts.push_back(host);
  return hosts;
}

void Slots::enter(std::uint32_t slot, std::uint32_t host) {
  if (slot == slots_.size()) {
    slots_.push_back(host);
  } else {
    num_gaps_ -= slots_[slot] == none ? 1 : 0;
    slots_[slot] = host;
  }
  slot_of_[host] = slot;
  num_bad_ += is_bad_[host];
  if (const std::uint32_t group = group_of(host); group != none) num_groups_ += active_of_group_[group]++ == 0 ? 1 : 0;
}

void Slots::leave(std::uint32_t host) {
  slots_[slot_of_[host]] = none;
  ++num_gaps_;
  slot_of_[host] = none;
  num_bad_ -= is_bad_[host];
  if (const std::uint32_t group = group_of(host); group != none) num_groups_ -= --active_of_group_[group] == 0 ? 1 : 0;
}

}  // namespace orrery::campaign
