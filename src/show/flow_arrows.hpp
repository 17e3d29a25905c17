#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <tuple>
#include <utility>
#include <vector>

#include "orrery/base/quantity.hpp"
#include "orrery/config/npu_list.hpp"
#include "orrery/npu/record.hpp"

namespace orrery::show {

/// Numbers the arrows of a timeline that is written one NPU after the other: from each send to its receive, and through
/// the members of each collective. The k-th send of a channel (source, destination and tag) belongs to the k-th
/// receive, and the k-th collective of a member in a group to the k-th of the others.
class FlowArrows {
 public:
  /// One end of an arrow, or the part of a collective's arrow at one member.
  struct End {
    enum class Part : std::uint8_t { begins, passes, ends };

    std::uint64_t id;
    Part part;
    Time at;  ///< never before the beginning of the arrow; all members of a collective are in it then
  };

  /// `shown` are the NPUs that are written, ascending. They outlive this object.
  explicit FlowArrows(std::span<const config::NpuRange> shown) : shown_(shown) {}

  /// Counts a collective before anything is written. Each NPU is counted once, in the order of its rows.
  void count(const npu::TimelineRecord& record);
  /// Ends the rows of an NPU: those of the next one are counted anew.
  void next_npu();
  /// Returns the end of the arrow at a node; none if no arrow passes it, or its other end is not shown.
  std::optional<End> end_at(const npu::TimelineRecord& record);

 private:
  using Collective = std::pair<std::uint32_t, std::uint64_t>;               // group, and number in the group
  using Channel = std::tuple<std::uint32_t, std::uint32_t, std::uint64_t>;  // source, destination, tag
  struct Members {
    std::uint64_t id = 0;
    std::uint64_t number = 0;  // of the members that are shown
    std::uint64_t written = 0;
    Time last_arrival;
  };

  bool is_shown(std::uint32_t npu) const;
  static End::Part part_of(Members& members);

  std::span<const config::NpuRange> shown_;
  std::map<Collective, Members> collectives_;
  std::map<std::pair<Channel, std::uint64_t>, std::uint64_t> messages_;  // their ids, by number in the channel
  std::map<std::uint32_t, std::uint64_t> groups_;                        // collectives of the present NPU so far
  std::map<std::pair<bool, Channel>, std::uint64_t> channels_;           // sends and receives of the present NPU so far
  std::uint64_t num_arrows_ = 0;
};

}  // namespace orrery::show
