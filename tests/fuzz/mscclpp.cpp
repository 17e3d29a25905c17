// Execution plans of MSCCL++ (JSON): any file is a plan or is refused, as a custom collective and as a program of GPUs.
#include <cstddef>
#include <cstdint>

#include "collective_target.hpp"
#include "orrery/gpu/check.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text = orrery::fuzz::text_of(data, size);
  const auto path = orrery::fuzz::write_input(text, "plan.json");
  if (!orrery::collective::is_execution_plan(path)) return -1;
  orrery::fuzz::read_collective(text, "plan.json");
  (void)orrery::fuzz::accepts([&] {
    orrery::gpu::Plan plan = orrery::gpu::parse_plan(text, "plan.json");
    (void)plan.counts();
    plan.least = orrery::Bytes(0);
    plan.most = orrery::Bytes(~std::uint64_t{0});
    const orrery::Bytes message = orrery::gpu::test_message(plan);
    (void)orrery::gpu::check_program(orrery::gpu::make_program(plan, message), plan.kind, message);
  });
  return 0;
}
