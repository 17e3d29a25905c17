#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "orrery/base/ids.hpp"
#include "orrery/base/quantity.hpp"
#include "orrery/collective/options.hpp"
#include "orrery/network/delay_model.hpp"

namespace orrery::collective {

/// Says what collectives take that no algorithm carries out but something else, such as the thread blocks of GPUs. All
/// members complete together, so long after the last one has joined. Immutable.
class WholeDurations {
 public:
  virtual ~WholeDurations() = default;

  /// Returns the name of what carries out collectives of this kind among so many members; none if algorithms do.
  /// `whole` are the bytes of the larger buffer: Kind::all_gather and Kind::gather have the shares of all members in
  /// it.
  virtual std::optional<std::string> carrier(Kind kind, std::uint32_t members, Bytes whole) const = 0;
  /// Returns whether there is a carrier for collectives of some kind and size among so many members.
  virtual bool carries_some(std::uint32_t members) const = 0;
  /// Returns the time from the last arrival to the end, if there is a carrier. Throws Error (bad_input) if it cannot
  /// carry out a collective among these members.
  virtual Time duration(const network::DelayModel& delays, std::span<const NpuId> members, Kind kind,
                        Bytes whole) const = 0;
};

}  // namespace orrery::collective
