#pragma once

#include "orrery/collective/library.hpp"
#include "orrery/collective/options.hpp"

namespace orrery::collective {

/// Returns which part of the buffer a member sends: what nccl-tests calls the factor of the bus bandwidth.
double bus_factor(Kind kind, double ranks);

/// Returns the share of an all-reduce's ramp that a collective has within a node. A ring takes n - 1 steps for
/// all-gather and reduce-scatter, and twice as many for an all-reduce, by whose runs the ramps are fitted.
double share_of_ramp(Kind kind, std::uint32_t ranks);

/// Returns what library_time returns where LibraryOptions::relative is false.
LibraryTime absolute_time(const LibraryOptions& options, Kind kind, const LibraryGroup& group, double bytes);

/// Returns the shares that hold: those of the library and the fabric, or those that the options put in their place,
/// relative to what rings reach if the rates of links are such.
NodeShares node_shares(const LibraryOptions& options);
NicShares nic_shares(const LibraryOptions& options);

}  // namespace orrery::collective
