// Algorithms of MSCCL (XML): any file is an algorithm or is refused.
#include <cstddef>
#include <cstdint>

#include "collective_target.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  orrery::fuzz::read_collective(orrery::fuzz::text_of(data, size), "algorithm.xml");
  return 0;
}
