#pragma once

#include <cstdint>
#include <string_view>

#include "keys.hpp"

namespace orrery::config {

// The keys of system.network.packets that say when switches mark packets, and how they keep from losing them.

/// What keeps switches from losing packets.
enum class FlowControl : std::uint8_t { pauses, credits, none };

const Words<FlowControl>& flow_controls();
Handling<Configuration> flow_control_handling();
/// Reads `pauses`, which older configurations have in place of `flow-control`.
Handling<Configuration> pauses_handling();

inline constexpr std::string_view marks_expected =
    "rows [rate, least, most, probability] such as [100 Gb/s, 400 kB, 1600 kB, 0.2]";
Handling<Configuration> marks_handling();

}  // namespace orrery::config
