#include "orrery/network/analytical.hpp"

#include <algorithm>

namespace orrery::network {

Analytical::Analytical(const DelayModel& delays, const topology::Circuits* circuits)
    : delays_(delays),
      circuits_(circuits),
      bytes_(delays.topology().num_dimensions()),
      busy_time_(delays.topology().num_dimensions()) {}

void Analytical::count(std::uint32_t dimension, Bytes size, std::uint64_t times) {
  bytes_[dimension] += size * times;
  const Time each = orrery::delay(0, size, delays_.topology().dimension(dimension).bandwidth, delays_.rounding());
  busy_time_[dimension] += static_cast<SumOfTimes>(each.ps()) * times;
}

void Analytical::serialize_sums(Archive& archive) {
  auto bytes = bytes_;
  auto busy_time = busy_time_;
  archive(bytes, busy_time);
  if (!archive.reads()) return;
  for (std::size_t d = 0; d < bytes_.size(); ++d) {
    bytes_[d] += bytes.at(d);
    busy_time_[d] += busy_time.at(d);
  }
}

bool Analytical::in_range() const {
  return std::ranges::none_of(bytes_, [](Bytes bytes) { return bytes > Bytes::most(); });
}

void Analytical::count_message(NpuId from, NpuId to, Bytes size, std::uint64_t times) {
  delays_.for_each_leg(position_of(circuits_, 0, from), position_of(circuits_, 0, to),
                       [&](std::uint32_t d, std::uint32_t, const topology::Port&) { count(d, size, times); });
}

void Analytical::count_way(NpuId from, NpuId to, Bytes size, std::uint32_t configuration) {
  const topology::Topology& topology = delays_.topology();
  const NpuId a = position_of(circuits_, configuration, from), b = position_of(circuits_, configuration, to);
  for (std::uint32_t d = 0; d < topology.num_dimensions(); ++d)
    if (topology.coordinate(a, d) != topology.coordinate(b, d)) count(d, size, 1);
}

void Analytical::count_collective(std::span<const Bytes> per_member, std::uint64_t members) {
  for (std::uint32_t d = 0; d < per_member.size(); ++d)
    if (per_member[d].count() > 0) count(d, per_member[d], members);
}

}  // namespace orrery::network
