#pragma once

#include <cstdint>
#include <vector>

#include "group_layout.hpp"
#include "orrery/collective/collective.hpp"

namespace orrery::collective {

/// Counts, for one dimension group, the bytes that all its positions send in each of the axis' dimensions.
class SentBytes {
 public:
  using Wide = unsigned __int128;

  /// A message over several dimensions counts in each, or with `every_dimension` off in the first of them.
  SentBytes(const Axis& axis, bool every_dimension)
      : axis_(axis), every_dimension_(every_dimension), sent_(axis.dimensions.size()) {}

  /// Returns the bytes: [dimensions of the axis].
  const std::vector<Wide>& in_dimensions() const { return sent_; }

  /// Counts `count` messages from position i to position j.
  void add(std::uint32_t i, std::uint32_t j, Wide count, Bytes message);
  /// Counts `count` messages from each position to each other. O(positions * dimensions * log).
  void add_all_pairs(Wide count, Bytes message);

 private:
  const Axis& axis_;
  bool every_dimension_;
  std::vector<Wide> sent_;
};

/// See Engine::traffic. O(phases) and what the algorithms' PhaseAlgorithm::count_bytes cost.
CollectiveTraffic traffic_of(const network::DelayModel& delays, const Options& options, const GroupLayout& layout,
                             Kind kind, Bytes size);

}  // namespace orrery::collective
