// Price files (docs/cost.md): any file has prices or is refused.
#include <cstddef>
#include <cstdint>

#include "configured_file.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  orrery::fuzz::read_with_file(orrery::fuzz::text_of(data, size), "prices.yaml",
                               "system:\n"
                               "  network:\n"
                               "    dimensions:\n"
                               "      - {shape: FullyConnected, size: 2, bandwidth: 100 GB/s, latency: 1 us}\n"
                               "      - {shape: Switch, size: 4, bandwidth: 50 GB/s, latency: 1 us}\n"
                               "  compute: {roofline: false}\n"
                               "cost: '%/prices.yaml'\n");
  return 0;
}
