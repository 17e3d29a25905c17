// Measured values in files: kernels (CSV), collectives (what nccl-tests prints) and factors, one a line. Any text is
// each of them or is refused.
#include <cstddef>
#include <cstdint>
#include <string>

#include "fuzz_input.hpp"
#include "kernel_table.hpp"
#include "keys/keys.hpp"
#include "orrery/collective/library.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace orrery;
  const std::string_view text = fuzz::text_of(data, size);
  (void)fuzz::accepts([&] { (void)compute::KernelTable::parse(text, "kernels.csv", "bf16"); });
  (void)fuzz::accepts([&] { (void)config::parse_factors(std::string(text), "factors.txt"); });
  (void)fuzz::accepts([&] {
    const collective::MeasuredSeries series = collective::parse_nccl_tests(text, "measured.txt");
    if (series.points.empty()) fuzz::fail("a series without a point");
    for (std::size_t i = 1; i < series.points.size(); ++i)
      if (!(series.points[i - 1].bytes < series.points[i].bytes)) fuzz::fail("a series that does not ascend");
  });
  return 0;
}
