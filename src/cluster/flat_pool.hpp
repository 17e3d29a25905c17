#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "orrery/cluster/placement.hpp"

namespace orrery::cluster {

/// NPUs 0 to n - 1 in leaves of one size, whose places count (P1 to P4).
class FlatPool final : public Pool {
 public:
  FlatPool(const Places& places, std::uint64_t seed);

  bool fits(const Job& job) const override;
  Place find(const Job& job, std::uint64_t number) const override;
  void take(const Place& place) override { change(place, false); }
  void release(const Place& place) override { change(place, true); }
  std::unique_ptr<Pool> copy() const override;
  /// A drawn place of part of a host may break a host that another job needs as a whole, or not.
  bool places_by_size(const Job& job) const override {
    return policy_ != Placing::random || host_ == 1 || request(job).unit > 1;
  }
  std::uint32_t occupied(const Job& job) const override;
  std::vector<std::uint32_t> leaves(const Place& place) const override;

 private:
  /// What a job is given: NPUs one by one, or whole hosts.
  struct Request {
    std::uint32_t units = 0, unit = 1;  ///< number of units, NPUs of each
  };

  Request request(const Job& job) const;
  bool is_free(std::uint32_t npu) const { return (free_[npu / 64] >> (npu % 64) & 1U) != 0; }
  bool is_unit_free(std::uint32_t unit, std::uint32_t size) const;
  /// Calls visit(unit) for the free units from `first` to before `end`, ascending, until it returns false.
  template <class Visit>
  void visit_free(std::uint32_t first, std::uint32_t end, std::uint32_t size, Visit visit) const;
  std::uint32_t free_units_of_leaf(std::uint32_t leaf, std::uint32_t size) const;
  std::uint32_t longest_run() const;
  void change(const Place& place, bool is_free);
  void change_run(std::uint32_t first, std::uint32_t end, bool is_free);

  using Units = std::vector<std::uint32_t>;
  Units first(const Request& request) const;
  Units contiguous(const Request& request) const;
  Units packed(const Request& request) const;
  Units random(const Request& request, std::uint64_t number) const;
  void take_of_leaf(std::uint32_t leaf, std::uint32_t count, std::uint32_t size, Units& units) const;

  Placing policy_;
  std::uint32_t leaf_, num_leaves_, host_;
  std::uint64_t seed_;
  std::vector<std::uint64_t> free_;           // [npus / 64] bits
  std::vector<std::uint32_t> of_leaf_;        // [leaves] free NPUs
  std::vector<std::uint32_t> of_host_;        // [hosts] free NPUs, where hosts have several NPUs
  std::vector<std::uint32_t> hosts_of_leaf_;  // [leaves] hosts that are free as a whole
  std::uint32_t free_hosts_ = 0;
  mutable std::int64_t longest_run_ = -1;  // of free NPUs; -1: not known
};

}  // namespace orrery::cluster
