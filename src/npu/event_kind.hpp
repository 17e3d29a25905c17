#pragma once

#include <cstdint>

#include "orrery/memory/memory_servers.hpp"
#include "orrery/network/message.hpp"
#include "orrery/pdes/event.hpp"

namespace orrery::npu {

/// What an event for an NPU means.
enum class EventKind : std::uint16_t {
  complete = pdes::completion,  ///< node `node` is done
  start,                        ///< once, at time 0

  // Of DelayMessaging. `node` of an event of another NPU is StreamEnd::stream.
  data,           ///< a message of another NPU of `detail` bytes
  received,       ///< matched `data`: receive `node`, posted at `detail` ps, is done
  clear_to_send,  ///< another NPU is ready to receive (rendezvous)
  cleared,        ///< matched `clear_to_send`: the data of send `node` leave

  // Of the thread blocks of a GPU. `node` is the slot of a kernel (GpuCollectives).
  gpu_resume,  ///< coroutine `detail` of the kernel goes on
  gpu_offer,   ///< requests are handed to their first links
  gpu_over,    ///< the kernel is over
  gpu_take,    ///< a request that has come is through the ports of the GPU. `node`: its slot

  goes_on = memory::access_goes_on,  ///< the access of `node` does not end at once

  // Of the links.
  arrived = static_cast<std::uint16_t>(network::Delivery::arrived),  ///< a message is there
  sent = static_cast<std::uint16_t>(network::Delivery::sent),        ///< the data of send `node` are at the receiver
  wake = static_cast<std::uint16_t>(network::Delivery::wake),        ///< collective `node` goes on, in step `detail`
  left = static_cast<std::uint16_t>(network::Delivery::left),        ///< a request of a thread block is on its way
};

}  // namespace orrery::npu
