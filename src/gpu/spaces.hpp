#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "orrery/gpu/program.hpp"

namespace orrery::gpu {

/// Memory of a GPU that does not overlap with other memory of it: in place, input and output are one.
enum class Space : std::uint8_t { first, output, scratch, packets };
inline constexpr std::size_t num_spaces = 4;

/// A range of bytes of a space.
struct Extent {
  std::uint32_t gpu = 0;
  Space space = Space::first;
  std::uint64_t first = 0, last = 0;  ///< [first, last)
};

/// Returns where bytes of a buffer are.
inline Extent extent_of(const Program& program, std::uint32_t gpu, Buffer buffer, std::uint64_t offset,
                        std::uint64_t bytes, bool is_packets) {
  Extent extent{gpu, Space::scratch, offset, offset + bytes};
  if (buffer == Buffer::scratch) {
    if (is_packets) extent.space = Space::packets;
    return extent;
  }
  const std::uint64_t input = program.gpus[gpu].input.count(), output = program.gpus[gpu].output.count();
  const bool is_input = buffer == Buffer::input;
  extent.space = is_input || program.in_place ? Space::first : Space::output;
  const bool is_part = is_input ? input < output : output < input;
  if (program.in_place && is_part) {
    extent.first += gpu * std::min(input, output);
    extent.last += gpu * std::min(input, output);
  }
  return extent;
}

/// Calls take(extent) for the memory that an operand names: of a switch that of each GPU of the group.
template <class Take>
void for_each_extent(const Program& program, const Operand& operand, Take take) {
  if (operand.bytes == Bytes(0)) return;
  const auto one = [&](std::uint32_t gpu) {
    take(extent_of(program, gpu, operand.buffer, operand.offset, operand.bytes.count(), is_packets(operand.access)));
  };
  if (!is_of_group(operand.access)) return one(operand.gpu);
  for (const std::uint32_t gpu : program.groups[operand.gpu]) one(gpu);
}

/// Returns "bytes 0 to 511 of scratch of GPU 3".
inline std::string text_of(const Program& program, const Extent& extent) {
  const std::uint64_t input = program.gpus[extent.gpu].input.count(), output = program.gpus[extent.gpu].output.count();
  const char* name = "input";
  if (extent.space == Space::output || (extent.space == Space::first && program.in_place && output > input))
    name = "output";
  if (extent.space == Space::scratch) name = "scratch";
  if (extent.space == Space::packets) name = "packets in scratch";
  return fmt::format("bytes {} to {} of the {} of GPU {}", extent.first, extent.last - 1, name, extent.gpu);
}

}  // namespace orrery::gpu
