// Descriptions of InfraGraph (YAML and JSON): any text is a description or is refused, and so is the network in it.
#include <cstddef>
#include <cstdint>
#include <numeric>

#include "fuzz_input.hpp"
#include "orrery/graphfile/infragraph.hpp"
#include "orrery/topology/network_graph.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace orrery;
  const auto path = fuzz::write_input(fuzz::text_of(data, size), "graph.yaml");
  (void)fuzz::accepts([&] {
    const topology::ComponentGraph components = graphfile::read_infragraph(path);
    topology::NetworkGraph network = topology::network_of(components);
    const auto dimensions = topology::find_dimensions(network);
    const std::uint64_t product =
        std::accumulate(dimensions.begin(), dimensions.end(), std::uint64_t{1},
                        [](std::uint64_t sizes, const auto& dimension) { return sizes * dimension.size; });
    if (!dimensions.empty() && product != network.num_npus) fuzz::fail("the dimensions have another number of NPUs");
    const topology::LinkDefaults all_defaults[] = {{},
                                                   {.all = {1.0, {}}, .of_link = {}},
                                                   {.all = {1.0, 1.0}, .of_link = {}},
                                                   {.all = {}, .of_link = {{"pcie", {1, 1}}}}};
    for (const topology::LinkDefaults& defaults : all_defaults)
      (void)fuzz::accepts([&] {
        topology::NetworkGraph completed = network;
        topology::complete_links(completed, defaults, "graph.yaml");
      });
  });
  return 0;
}
