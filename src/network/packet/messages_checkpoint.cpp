// Messages under way in a checkpoint.
#include <algorithm>
#include <span>
#include <utility>
#include <vector>

#include "messages.hpp"

namespace orrery::network {
namespace {

/// Returns the entries of a host in a list that is ordered by hosts.
template <class Entry>
std::span<const Entry> entries_of(const std::vector<Entry>& all, std::uint32_t host) {
  const auto found = std::ranges::equal_range(all, host, {}, &Entry::first);
  return {found.begin(), found.end()};
}

}  // namespace

Rank PacketMessages::host_of(LpId process) const { return of_node_[process.value() - part_.first_process.value()]; }

std::vector<LpId> PacketMessages::used() {
  devices_->begin_saving();
  saved_incoming_.clear();
  saved_outgoing_.clear();
  for (const auto& [key, slot] : incoming_)
    saved_incoming_.emplace_back(messages_[slot].destination.value(), std::pair(key, slot));
  for (const auto& [key, receipt] : outgoing_)
    saved_outgoing_.emplace_back(static_cast<std::uint32_t>(key >> 32U), std::pair(key, receipt));
  const auto by_host_and_key = [](const auto& entry) { return std::pair(entry.first, entry.second.first); };
  std::ranges::sort(saved_incoming_, {}, by_host_and_key);
  std::ranges::sort(saved_outgoing_, {}, by_host_and_key);
  std::vector<LpId> all;
  for (std::uint32_t node = 0; node < of_node_.size(); ++node)
    if (devices_->is_here(node)) all.emplace_back(part_.first_process.value() + node);
  return all;
}

bool PacketMessages::has_message(const pdes::Event& event) const {
  if (event.target < part_.first_process) return event.kind == static_cast<std::uint16_t>(Delivery::arrived);
  return event.kind == begin || event.kind == announcement || event.kind == begin_reduction;
}

std::vector<std::byte> PacketMessages::pack(const pdes::Event& event) const {
  if (has_message(event)) {
    const auto bytes = std::as_bytes(std::span(&messages_[event.node], 1));
    return {bytes.begin(), bytes.end()};
  }
  return event.target < part_.first_process ? std::vector<std::byte>() : devices_->pack(event);
}

void PacketMessages::serialize(LpId process, Archive& archive) {
  const std::uint32_t node = process.value() - part_.first_process.value();
  devices_->serialize(node, archive);
  if (node >= num_sent_.size()) return;
  std::vector<std::pair<std::uint64_t, Message>> incoming;
  std::vector<std::pair<std::uint64_t, Receipt>> outgoing;
  if (!archive.reads()) {
    for (const auto& [host, entry] : entries_of(saved_incoming_, node))
      incoming.emplace_back(entry.first, messages_[entry.second]);
    for (const auto& [host, entry] : entries_of(saved_outgoing_, node)) outgoing.push_back(entry);
  }
  std::vector<std::pair<ReductionKey, Message>> reducing;
  if (!archive.reads())
    for (auto one = reducing_.lower_bound({.host = node}); one != reducing_.end() && one->first.host == node; ++one)
      reducing.emplace_back(one->first, messages_[one->second]);
  archive(num_sent_[node], incoming, outgoing, reducing);
  if (!recorded_.empty()) archive(recorded_[node].begun, recorded_[node].arrivals);
  if (!archive.reads()) return;
  for (const auto& [key, message] : incoming) incoming_.emplace(key, messages_.put(message));
  outgoing_.insert(outgoing.begin(), outgoing.end());
  for (const auto& [key, message] : reducing) reducing_.emplace(key, messages_.put(message));
}

}  // namespace orrery::network
