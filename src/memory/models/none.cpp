#include <source_location>

#include "orrery/base/error.hpp"
#include "orrery/memory/remote_memory.hpp"

namespace orrery::memory {
namespace {

class NoMemory final : public RemoteMemoryModel {
 public:
  std::uint32_t npus_per_server() const override { return 0; }
  Time access_time(Bytes) const override {
    ensure_failed("an access to remote memory that is not there", std::source_location::current());
  }
};

}  // namespace

extern const RemoteMemoryType no_memory;
constinit const RemoteMemoryType no_memory{
    .name = "none",
    .help = "NPUs have no remote memory; an access is an error before the run",
    .has_memory = false,
    .make = [](const RemoteMemoryOptions&, std::uint32_t) -> std::unique_ptr<const RemoteMemoryModel> {
      return std::make_unique<NoMemory>();
    },
};

}  // namespace orrery::memory
