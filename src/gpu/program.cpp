#include "orrery/gpu/program.hpp"

#include <fmt/format.h>

#include <utility>

namespace orrery::gpu {

void Gpu::add(Block& block, Operation operation, std::span<const Operand> sources,
              std::span<const Operand> destinations, std::span<const std::uint32_t> used_ids) {
  operation.first_operand = static_cast<std::uint32_t>(operands.size());
  operation.num_sources = static_cast<std::uint32_t>(sources.size());
  operation.num_destinations = static_cast<std::uint32_t>(destinations.size());
  operation.first_id = static_cast<std::uint32_t>(ids.size());
  operation.num_ids = static_cast<std::uint32_t>(used_ids.size());
  operands.insert(operands.end(), sources.begin(), sources.end());
  operands.insert(operands.end(), destinations.begin(), destinations.end());
  ids.insert(ids.end(), used_ids.begin(), used_ids.end());
  block.operations.push_back(operation);
}

std::pair<std::uint32_t, std::uint32_t> Program::connect(std::uint32_t a, std::uint32_t b, Transport transport) {
  const auto end_of_a = static_cast<std::uint32_t>(gpus[a].channels.size());
  const auto end_of_b = static_cast<std::uint32_t>(gpus[b].channels.size());
  gpus[a].channels.push_back({transport, b, end_of_b});
  gpus[b].channels.push_back({transport, a, end_of_a});
  return {end_of_a, end_of_b};
}

std::string Program::place(std::uint32_t gpu, const Block& block, const Operation& operation) const {
  return fmt::format("GPU {}, thread block {}, operation {} ({})", gpu, block.id, operation.number,
                     gpu::name(operation.kind));
}

}  // namespace orrery::gpu
