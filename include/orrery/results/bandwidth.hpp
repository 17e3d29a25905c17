#pragma once

#include <cstdint>

#include "orrery/collective/collective.hpp"
#include "orrery/communicator/record.hpp"

/// Bandwidths of collectives as nccl-tests defines them.
namespace orrery::results {

/// Returns the bytes that collectives work on, where their sizes add up to `bytes`: the whole buffer; of all-gather and
/// gather members * shard.
unsigned __int128 worked_bytes(collective::Kind kind, std::uint32_t members, unsigned __int128 bytes);

/// Returns these bytes over the time from the last arrival to the finish, in bytes per second. NaN where that time is
/// zero.
double algorithm_bandwidth(const communicator::CollectiveRecord& collective);

/// Returns what the algorithm bandwidth is multiplied by so that it can be compared with the bandwidth of a link
/// for any number of members n: 2(n-1)/n for all-reduce; (n-1)/n for all-gather, reduce-scatter, all-to-all,
/// gather and scatter; 1 for broadcast and reduce. Source: nccl-tests, doc/PERFORMANCE.md; for gather and scatter its
/// src/gather.cu and scatter.cu.
double bus_factor(collective::Kind kind, std::uint32_t members);

}  // namespace orrery::results
