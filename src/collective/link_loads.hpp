#pragma once

#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

#include "group_context.hpp"
#include "rounds.hpp"

namespace orrery::collective {

/// How many messages of a round pass each link, where every position sends to those at the distances of the round at a
/// time, over the routes that the congestion-aware network has.
class LinkLoads {
 public:
  /// The axis and the topology must outlive it. Cost O(messages * hops), or O(messages of a position * hops) for many
  /// positions whose delays depend on distances alone.
  LinkLoads(const GroupContext& context, const Round& round);

  /// Returns the messages on the busiest link that a message from position i to position j passes in the axis' k-th
  /// dimension. In groups of more than 256 positions this is the busiest link of the dimension. O(hops).
  std::uint64_t of(std::size_t k, std::uint32_t i, std::uint32_t j) const;
  /// Returns the messages on the busiest link of the axis' k-th dimension; 1 at the least.
  std::uint64_t most(std::size_t k) const { return most_[k]; }
  /// Returns whether all messages that pass a dimension meet equally many, or `of` says so.
  bool is_uniform() const { return is_uniform_; }

 private:
  /// Counts by the number of a link.
  class Counter {
   public:
    std::uint64_t& operator[](std::uint64_t link);
    std::uint64_t of(std::uint64_t link) const;

   private:
    std::vector<std::uint64_t> dense_;
    std::unordered_map<std::uint64_t, std::uint64_t> sparse_;
  };

  const topology::Wiring& wiring_of(std::size_t k) const { return topology_.wiring(axis_.dimensions[k]); }
  NpuId npu(std::uint32_t position) const { return axis_.npus[std::size_t{group_} * axis_.size + position]; }
  NpuId moved(NpuId npu, std::size_t k, std::uint32_t position) const;
  std::uint64_t line_of(std::size_t k, std::uint32_t from, std::uint32_t to) const;
  template <class Visit>
  void for_each_link(std::size_t k, std::uint32_t from, std::uint32_t to, Visit visit) const;
  template <class Visit>
  void for_each_link_around(std::size_t k, std::uint32_t from, std::uint32_t to, Visit visit) const;
  void count_alike(const Round& round);

  const topology::Topology& topology_;
  const Axis& axis_;
  std::uint32_t group_;
  bool has_detours_;
  std::vector<Counter> counts_;      ///< [dimensions] by link
  std::vector<std::uint64_t> most_;  ///< [dimensions]
  bool is_uniform_ = true;
  bool is_alike_ = false;  ///< links are those of any position
};

/// Returns whether messages of a step may share links of the axis with others than those that their position sends.
bool may_share_links(const GroupContext& context);
/// Returns the context with the loads of one round, if it has messages that share links.
GroupContext with_loads(const GroupContext& context, const Round& round);

}  // namespace orrery::collective
