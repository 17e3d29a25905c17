#pragma once

#include <cstdint>
#include <map>
#include <tuple>
#include <vector>

#include "routes.hpp"

namespace orrery::collective {

/// The order in which a chunk takes the axes: of an all-gather backwards, of a local_bw_aware all-reduce on its way up.
using AxisOrder = std::vector<std::uint32_t>;

AxisOrder ascending(const GroupLayout& layout);

/// Returns the order of round-robin: the chunk begins with axis `turn` (modulo their number) and goes on upwards.
AxisOrder rotated(const GroupLayout& layout, std::uint64_t turn);

/// Returns whether chunks go up and down the axes: a local_bw_aware all-reduce.
bool goes_up_and_down(const Options& options, Kind kind);

/// Orders axes by load: every chunk takes the axes in ascending order of the time for which they will be busy with the
/// chunks before it. The load of an axis begins with the latencies of what a chunk does there. Source: Rashidi et al.,
/// "Themis: a network bandwidth-aware collective scheduling policy for distributed training of DL models", ISCA 2022.
class Themis {
 public:
  Themis(const network::DelayModel& delays, const Options& options, const GroupLayout& layout, Kind kind);

  /// Returns the order of the next chunk, of so many bytes.
  AxisOrder next(Bytes chunk);

 private:
  /// Returns whether a chunk gets smaller from one axis to the next.
  bool shrinks() const { return kind_ != Kind::all_to_all && (kind_ != Kind::all_reduce || up_and_down()); }
  bool up_and_down() const { return goes_up_and_down(options_, kind_); }
  /// Returns for how long a chunk that comes to the axis with so many bytes is there, on its way up or the only one.
  Ps one_way(std::uint32_t a, Bytes size);
  /// Returns the same for all its ways.
  Ps all_ways(std::uint32_t a, Bytes size);
  Ps duration(std::uint32_t a, Kind kind, Bytes size);

  const network::DelayModel& delays_;
  const Options& options_;
  const GroupLayout& layout_;
  Kind kind_;
  bool reduces_;
  std::vector<Ps> load_;  ///< [axes]
  std::map<std::tuple<std::uint32_t, Kind, Bytes>, Ps> durations_;
};

}  // namespace orrery::collective
