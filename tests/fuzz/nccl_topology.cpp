// Topologies of NCCL and RCCL (XML): any file is a topology or is refused, and what is made of a topology is a system
// that a configuration may have. The same holds for its nodes and links.
#include <cstddef>
#include <cstdint>
#include <string>

#include "fuzz_input.hpp"
#include "nccl_topology.hpp"
#include "orrery/config/configuration.hpp"
#include "orrery/config/read.hpp"
#include "orrery/graphfile/nccl_server.hpp"

namespace {
using namespace orrery;

/// Ends with a crash if the text is no system.
void require_system(const std::string& yaml) {
  try {
    (void)config::parse(yaml, "topology.yaml", {}, true);
  } catch (const Error& error) {
    fuzz::fail("the system that was made is refused: " + std::string(error.what()) + "\n" + yaml);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text = fuzz::text_of(data, size);
  (void)graphfile::is_nccl_topology(text);
  const auto path = fuzz::write_input(text, "topology.xml");
  std::string yaml;
  if (fuzz::accepts([&] { yaml = graphfile::nccl_topology_to_yaml(path, {}).yaml; })) require_system(yaml);
  (void)fuzz::accepts([&] { (void)graphfile::read_nccl_server(path, true, {}); });
  return 0;
}
