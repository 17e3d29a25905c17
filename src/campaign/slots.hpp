#pragma once

#include <cstdint>
#include <vector>

#include "orrery/campaign/draws.hpp"
#include "orrery/campaign/setup.hpp"

namespace orrery::campaign {

/// The active hosts of a job, one in each slot, with their groups and those that fail more often (R3).
class Slots {
 public:
  static constexpr std::uint32_t none = ~std::uint32_t{0};

  Slots(const HostNumbers& numbers, const Draws& draws);

  /// Returns [slots] the hosts; `none` for a slot that is empty until its host is replaced.
  const std::vector<std::uint32_t>& hosts() const { return slots_; }
  bool has(std::uint32_t host) const { return slot_of_[host] != none; }
  std::uint32_t slot_of(std::uint32_t host) const { return slot_of_[host]; }
  std::uint32_t size() const { return static_cast<std::uint32_t>(slots_.size()) - num_gaps_; }
  bool is_bad(std::uint32_t host) const { return is_bad_[host] != 0; }
  std::uint32_t num_bad() const { return num_bad_; }
  /// Returns the number of groups that have an active host.
  std::uint32_t num_groups() const { return num_groups_; }
  /// Returns the active hosts of group number `k` of those that have one, in the order of their slots. O(hosts).
  std::vector<std::uint32_t> hosts_of_group(std::uint32_t k) const;

  /// Puts a host into a slot.
  void enter(std::uint32_t slot, std::uint32_t host);
  /// Takes a host from its slot, which stays empty.
  void leave(std::uint32_t host);
  /// Takes all hosts from their slots, of which none are left. Calls left(host) for each.
  template <class Left>
  void clear(Left left) {
    for (const std::uint32_t host : slots_)
      if (host != none) {
        leave(host);
        left(host);
      }
    slots_.clear();
    num_gaps_ = 0;
  }
  /// Makes a host that is not active a good one.
  void cure(std::uint32_t host) { is_bad_[host] = 0; }

 private:
  void find_bad(const HostNumbers& numbers, const Draws& draws);
  void find_groups(const HostNumbers& numbers);
  std::uint32_t group_of(std::uint32_t host) const { return group_of_.empty() ? none : group_of_[host]; }

  std::vector<std::uint32_t> slots_, slot_of_;
  std::vector<std::uint8_t> is_bad_;
  std::vector<std::uint32_t> group_of_, active_of_group_;
  std::uint32_t num_gaps_ = 0, num_bad_ = 0, num_groups_ = 0;
};

}  // namespace orrery::campaign
