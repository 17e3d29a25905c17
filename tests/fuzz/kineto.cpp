// Recordings of PyTorch's profiler (Kineto): any file is a recording or is refused.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "trace_target.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  return orrery::fuzz::read_trace(orrery::fuzz::text_of(data, size),
                                  [](std::string_view format) { return format == "kineto"; });
}
