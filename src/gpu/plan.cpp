#include "orrery/gpu/plan.hpp"

#include <fmt/format.h>

namespace orrery::gpu {

bool is_plan(std::string_view text) {
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  return first != std::string_view::npos && text[first] == '{';
}

std::map<std::string, std::uint64_t, std::less<>> Plan::counts() const {
  std::map<std::string, std::uint64_t, std::less<>> counts;
  for (const Gpu& gpu : gpus)
    for (const Block& block : gpu.blocks) {
      std::uint32_t pipeline = 0;
      for (const Step& step : block.steps) {
        if (step.pipeline != 0 && step.pipeline != pipeline) ++counts["pipeline"];
        pipeline = step.pipeline;
        ++counts[std::string(gpu::name(step.kind))];
      }
    }
  return counts;
}

std::string Plan::place(std::uint32_t gpu, const Block& block, const Step& step) const {
  return fmt::format("GPU {}, thread block {}, operation {} ({})", gpu, block.id, step.number, gpu::name(step.kind));
}

}  // namespace orrery::gpu
