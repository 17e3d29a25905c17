#pragma once

#include <memory>

#include "orrery/memory/memory_server.hpp"
#include "single_memory.hpp"

namespace orrery::memory {

/// Returns a server that serves NPUs in turn, and simultaneous requests in the order of the events that led to them
/// (RemoteMemoryOptions::orders_requests). The memory must outlive it.
std::unique_ptr<SharedServer> make_ordered_turns(const SingleMemory& memory);

}  // namespace orrery::memory
