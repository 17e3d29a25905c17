#include "single_memory.hpp"

namespace orrery::memory {

extern const RemoteMemoryType pool_memory;
constinit const RemoteMemoryType pool_memory{
    .name = "pool",
    .help = "all NPUs share one memory, which serves them first come, first served",
    .make = [](const RemoteMemoryOptions& options, std::uint32_t num_npus) -> std::unique_ptr<const RemoteMemoryModel> {
      return std::make_unique<SingleMemory>(options, num_npus);
    },
};

}  // namespace orrery::memory
