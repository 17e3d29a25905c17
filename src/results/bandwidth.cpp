#include "orrery/results/bandwidth.hpp"

#include <limits>

namespace orrery::results {

unsigned __int128 worked_bytes(collective::Kind kind, std::uint32_t members, unsigned __int128 bytes) {
  const bool brings_shard = kind == collective::Kind::all_gather || kind == collective::Kind::gather;
  return brings_shard ? bytes * members : bytes;
}

double algorithm_bandwidth(const communicator::CollectiveRecord& collective) {
  const Time duration = collective.finish - collective.last_arrival;
  if (duration <= Time::zero()) return std::numeric_limits<double>::quiet_NaN();
  const auto kind = static_cast<collective::Kind>(collective.kind);
  return static_cast<double>(worked_bytes(kind, collective.members, collective.size.count())) / duration.seconds();
}

double bus_factor(collective::Kind kind, std::uint32_t members) {
  const double n = members;
  switch (kind) {
    case collective::Kind::all_reduce:
      return 2 * (n - 1) / n;
    case collective::Kind::broadcast:
    case collective::Kind::reduce:
    case collective::Kind::barrier:
    case collective::Kind::expert_dispatch:
    case collective::Kind::expert_combine:
      return 1;
    case collective::Kind::all_gather:
    case collective::Kind::reduce_scatter:
    case collective::Kind::all_to_all:
    case collective::Kind::gather:
    case collective::Kind::scatter:
      return (n - 1) / n;
  }
  return 1;
}

}  // namespace orrery::results
