// FLOWS.yaml: any file describes a network with flows over it or is refused.
#include <cstddef>
#include <cstdint>

#include "fuzz_input.hpp"
#include "orrery/config/flow_file.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace orrery;
  const auto path = fuzz::write_input(fuzz::text_of(data, size), "flows.yaml");
  (void)fuzz::accepts([&] {
    const network::FlowScenario scenario = config::read_flows(path, {}).scenario;
    for (const auto& flow : scenario.flows)
      if (flow.source >= scenario.graph.num_hosts() || flow.destination >= scenario.graph.num_hosts())
        fuzz::fail("a flow begins or ends at no host");
  });
  return 0;
}
