// Measured files correct the times of libraries.
#include <algorithm>
#include <cmath>

#include "orrery/collective/library.hpp"
#include "orrery/collective/options.hpp"

namespace orrery::collective {
namespace {

constexpr double most_doublings = 1;           ///< between the members of a file and of a group
constexpr double least_of_uncorrected = 0.25;  ///< below the smallest measured size
constexpr double rounding_of_ranks = 1e-9;

/// Sets the seconds, of which the parts keep their proportions.
LibraryTime scaled_to(LibraryTime time, double seconds) {
  const double ratio = time.seconds > 0 ? seconds / time.seconds : 1;
  for (double* part : {&time.latency, &time.ramp, &time.transfer}) *part *= ratio;
  time.seconds = seconds;
  return time;
}

}  // namespace

double MeasuredFile::ranks_of_node(std::uint32_t npus_of_node) const {
  if (node) return *node;
  if (npus_of_node > 0 && series.ranks % npus_of_node == 0) return npus_of_node;
  return static_cast<double>(series.ranks) / series.hosts;
}

Correction correction_of(const LibraryOptions& options, Kind kind, const LibraryGroup& group) {
  Correction best;
  const auto files = options.measured.find(kind);
  if (files == options.measured.end()) return best;
  double nearest = most_doublings;
  for (const MeasuredFile& file : files->second) {
    const double of_node = file.ranks_of_node(group.npus_of_node);
    const bool is_in_one_node = file.series.ranks <= of_node;
    if (is_in_one_node != (group.nodes == 1)) continue;
    if (!is_in_one_node && std::abs(of_node - group.of_node()) > rounding_of_ranks) continue;
    const double doublings = std::abs(std::log2(static_cast<double>(file.series.ranks) / group.ranks));
    if (doublings > nearest || (best.file != nullptr && doublings >= nearest)) continue;
    nearest = doublings;
    best = {&file, doublings > 0};
  }
  return best;
}

LibraryTime corrected_time(const LibraryOptions& options, Kind kind, const LibraryGroup& group, double bytes,
                           const MeasuredSeries& series, const LibraryGroup& measured) {
  LibraryTime time = library_time(options, kind, group, bytes);
  if (bytes <= 0) return time;
  const auto seconds_at = [&](double size) { return library_time(options, kind, measured, size).seconds; };
  const auto ratio = [&](const MeasuredCollective& point) { return std::log(point.seconds / seconds_at(point.bytes)); };
  const auto& points = series.points;
  const auto above = std::ranges::upper_bound(points, bytes, {}, &MeasuredCollective::bytes);
  if (bytes <= points.front().bytes) {
    const double more = points.front().seconds - seconds_at(points.front().bytes);
    return scaled_to(std::move(time), std::max(time.seconds + more, time.seconds * least_of_uncorrected));
  }
  if (above == points.end()) return scaled_to(std::move(time), time.seconds * std::exp(ratio(points.back())));
  const auto below = above - 1;
  const double share = std::log(bytes / below->bytes) / std::log(above->bytes / below->bytes);
  const double between = ratio(*below) + share * (ratio(*above) - ratio(*below));
  return scaled_to(std::move(time), time.seconds * std::exp(between));
}

}  // namespace orrery::collective
