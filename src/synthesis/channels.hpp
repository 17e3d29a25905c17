#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "locations.hpp"
#include "orrery/trace/store.hpp"
#include "program.hpp"

namespace orrery::synthesis {

/// The roles of the traces that are learned from.
struct Learned {
  std::span<const trace::NpuTrace> traces;
  std::vector<std::uint32_t> role_of = {};            ///< [npus]
  std::vector<Program> programs = {};                 ///< [roles]
  std::vector<Words> words = {};                      ///< [roles]
  std::vector<std::vector<Location>> locations = {};  ///< [roles]
};

/// Numbers the channels of messages: a send and the receive of its message are of one channel, and so is every message
/// from these nodes. Fills in `Slot::channel` of the roles' tokens and returns the number of channels. O(messages of
/// roles * log).
std::uint32_t find_channels(const Learned& learned, std::span<Role> roles);

}  // namespace orrery::synthesis
