// Rank maps (partitions/README.md) of eight NPUs on three ranks: any file deals the NPUs to ranks or is refused.
#include <cstddef>
#include <cstdint>

#include "fuzz_input.hpp"
#include "orrery/partition/strategy.hpp"
#include "orrery/topology/topology.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace orrery;
  const auto path = fuzz::write_input(fuzz::text_of(data, size), "ranks.txt");
  static const topology::Topology topology = [] {
    topology::Dimension dimension;
    dimension.size = 8;
    dimension.bandwidth = Bandwidth::from_bytes_per_ns(1);
    return topology::Topology({dimension});
  }();
  (void)fuzz::accepts([&] {
    const partition::PartitionOptions options(path.string(), {});
    const partition::Partition partition = options.make({.topology = topology, .num_ranks = 3});
    for (std::uint32_t npu = 0; npu < topology.num_npus(); ++npu)
      if (partition.rank_of(NpuId(npu)).index() >= 3) fuzz::fail("an NPU on a rank that does not exist");
  });
  return 0;
}
