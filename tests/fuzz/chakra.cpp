// Chakra execution traces of all versions of the schema, packed or not: any file is a trace or is refused.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "trace_target.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  return orrery::fuzz::read_trace(orrery::fuzz::text_of(data, size), [](std::string_view format) {
    return format.starts_with("chakra") && format != "chakra-json";
  });
}
