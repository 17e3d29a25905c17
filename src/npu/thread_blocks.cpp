#include "thread_blocks.hpp"

#include "gpu_collectives.hpp"
#include "orrery/base/error.hpp"

namespace orrery::npu {

void ThreadBlocks::arrive(Execution&, const network::Message&, Time) {
  ensure_failed("a request for thread blocks where there are none", std::source_location::current());
}

void ThreadBlocks::handle(Execution&, const pdes::Event&) {
  ensure_failed("an event for thread blocks where there are none", std::source_location::current());
}

std::unique_ptr<ThreadBlocks> make_thread_blocks(const Context& context) {
  if (context.gpus == nullptr) return std::make_unique<ThreadBlocks>();
  return std::make_unique<GpuCollectives>(*context.gpus);
}

}  // namespace orrery::npu
