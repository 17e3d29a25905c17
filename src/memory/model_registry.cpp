#include "orrery/memory/options.hpp"

namespace orrery::memory {

// Each is in a file of its own in src/memory/models.
extern const RemoteMemoryType no_memory, per_npu_memory, per_node_memory, pool_memory, hierarchical_pool_memory;

std::span<const RemoteMemoryType* const> RemoteMemoryType::registry() {
  static constexpr const RemoteMemoryType* kinds[] = {&no_memory, &per_npu_memory, &per_node_memory, &pool_memory,
                                                      &hierarchical_pool_memory};
  return kinds;
}

}  // namespace orrery::memory
