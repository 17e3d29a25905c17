#include "single_memory.hpp"

namespace orrery::memory {

extern const RemoteMemoryType per_node_memory;
constinit const RemoteMemoryType per_node_memory{
    .name = "per-node",
    .help = "the NPUs of each node share a memory, which serves them first come, first served",
    .has_nodes = true,
    .make = [](const RemoteMemoryOptions& options, std::uint32_t) -> std::unique_ptr<const RemoteMemoryModel> {
      return std::make_unique<SingleMemory>(options, options.npus_per_node);
    },
};

}  // namespace orrery::memory
