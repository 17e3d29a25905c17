#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "orrery/gpu/device.hpp"
#include "orrery/network/delay_model.hpp"

namespace orrery::gpu {

/// Times of a program if all GPUs begin together and nothing else is in progress.
struct Timing {
  Time whole;                                ///< time until the last GPU finishes
  std::vector<Time> ends;                    ///< [GPUs]
  std::uint32_t last = 0;                    ///< last GPU to finish, the lowest of these
  std::array<Time, num_stalls> stalls = {};  ///< stall times of its last block to end
  Time end;                                  ///< from the end of this block to the end of the kernel
  RequestCounts counts;                      ///< requests of all GPUs
  std::uint64_t events = 0;                  ///< events of the simulation
};

/// Simulates a program over the links of a topology, on this rank alone. `members[i]` is the NPU that is GPU i. Throws
/// Error: bad_input if blocks wait forever, with the reasons, or if an operation needs a switch that its group
/// does not have; the place names `program.file`. Cost O(log(bursts under way)) for each burst at each link.
Timing simulate_alone(const Program& program, const Parameters& parameters, Granularity granularity,
                      const network::DelayModel& delays, std::span<const NpuId> members);

/// Does the same on a switch that joins the GPUs by links of the profile, with these parameters.
Timing simulate_alone(const Program& program, const Profile& profile, const Parameters& parameters,
                      Granularity granularity);

}  // namespace orrery::gpu
