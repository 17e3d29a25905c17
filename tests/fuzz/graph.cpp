// Graphs of hosts, switches and links: our own YAML, topologies of ns-3 and InfraGraph. Any file is a graph or is
// refused, as the network of a simulation of NPUs.
#include <cstddef>
#include <cstdint>

#include "configured_file.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  orrery::fuzz::read_with_file(orrery::fuzz::text_of(data, size), "graph.yaml",
                               "system:\n"
                               "  network:\n"
                               "    model: packet\n"
                               "    graph:\n"
                               "      file: '%/graph.yaml'\n"
                               "      defaults: {bandwidth: 100 GB/s, latency: 1 us}\n"
                               "    dimensions: [{shape: Switch, size: 4}]\n"
                               "  compute: {roofline: false}\n");
  return 0;
}
