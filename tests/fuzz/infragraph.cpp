// Descriptions of InfraGraph (YAML and JSON): any text is a description or is refused, and so is the network in it.
#include <cstddef>
#include <cstdint>
#include <numeric>

#include "fuzz_input.hpp"
#include "orrery/topology/network_graph.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace orrery;
  const std::string_view text = fuzz::text_of(data, size);
  (void)fuzz::accepts([&] {
    const topology::ComponentGraph components = topology::parse_infragraph(text, "graph.yaml");
    topology::NetworkGraph network = topology::network_of(components);
    const auto dimensions = topology::find_dimensions(network);
    const std::uint64_t product =
        std::accumulate(dimensions.begin(), dimensions.end(), std::uint64_t{1},
                        [](std::uint64_t sizes, const auto& dimension) { return sizes * dimension.size; });
    if (!dimensions.empty() && product != network.num_npus) fuzz::fail("the dimensions have another number of NPUs");
    topology::complete_links(network, {.all = {1.0, 1.0}, .of_link = {}}, "graph.yaml");
  });
  return 0;
}
