// Execution plans of MSCCL++ (JSON): any file is a plan or is refused.
#include <cstddef>
#include <cstdint>

#include "collective_target.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto path = orrery::fuzz::write_input(orrery::fuzz::text_of(data, size), "plan.json");
  if (!orrery::collective::is_execution_plan(path)) return -1;
  orrery::fuzz::read_collective(orrery::fuzz::text_of(data, size), "plan.json");
  return 0;
}
