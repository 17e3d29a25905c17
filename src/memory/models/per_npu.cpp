#include "single_memory.hpp"

namespace orrery::memory {

extern const RemoteMemoryType per_npu_memory;
constinit const RemoteMemoryType per_npu_memory{
    .name = "per-npu",
    .help = "each NPU has a memory for itself",
    .make = [](const RemoteMemoryOptions& options, std::uint32_t) -> std::unique_ptr<const RemoteMemoryModel> {
      return std::make_unique<SingleMemory>(options, 0);
    },
};

}  // namespace orrery::memory
