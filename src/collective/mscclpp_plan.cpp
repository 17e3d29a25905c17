#include "orrery/collective/mscclpp_plan.hpp"

#include <fmt/format.h>

namespace orrery::collective::mscclpp {

std::map<std::string, std::uint64_t, std::less<>> Plan::counts() const {
  std::map<std::string, std::uint64_t, std::less<>> counts;
  for (const Gpu& gpu : gpus)
    for (const Block& block : gpu.blocks) {
      std::uint32_t pipeline = 0;
      for (const Step& step : block.steps) {
        if (step.pipeline != 0 && step.pipeline != pipeline) ++counts["pipeline"];
        pipeline = step.pipeline;
        ++counts[std::string(mscclpp::name(step.kind))];
      }
    }
  return counts;
}

std::string Plan::place(std::uint32_t gpu, const Block& block, const Step& step) const {
  return fmt::format("GPU {}, thread block {}, operation {} ({})", gpu, block.id, step.number,
                     mscclpp::name(step.kind));
}

}  // namespace orrery::collective::mscclpp
