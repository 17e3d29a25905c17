#pragma once

#include <cstdint>

#include "orrery/network/message.hpp"
#include "orrery/pdes/event.hpp"

namespace orrery::npu {

/// What an event for an NPU means.
enum class EventKind : std::uint16_t {
  complete = pdes::completion,  ///< node `node` is done
  start,                        ///< once, at time 0
  data,      ///< a message from `source` with tag `node` (folded: its stream there) and `detail` bytes
  received,  ///< what `data` becomes once it is matched: node `node`, posted at `detail` ps, is done
  grant,     ///< rendezvous: `source` is ready to receive with tag `node` (folded: as above)
  granted,   ///< what `grant` becomes once it is matched: the data of node `node` leave
  arrived = static_cast<std::uint16_t>(network::Delivery::arrived),
  sent = static_cast<std::uint16_t>(network::Delivery::sent),
  wake = static_cast<std::uint16_t>(network::Delivery::wake),
};

}  // namespace orrery::npu
