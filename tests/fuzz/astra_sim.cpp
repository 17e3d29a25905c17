// ASTRA-sim's own files: network.yml, system.json, remote_memory.json and comm_group.json, separated by lines `===`.
// Files that are not there are those of a small system. Any files are a configuration or are refused.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "fuzz_input.hpp"
#include "orrery/config/read.hpp"

namespace {
using namespace orrery;

std::filesystem::path write_file(std::string_view& rest, std::string_view otherwise, const char* name) {
  const std::string_view file = fuzz::take_file(rest);
  return fuzz::write_input(file.empty() ? otherwise : file, name);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::string_view rest = fuzz::text_of(data, size);
  config::AstraSimInputs files;
  files.workload = "nowhere/trace";
  files.network = write_file(rest, "topology: [ Ring ]\nnpus_count: [ 4 ]\nbandwidth: [ 50.0 ]\nlatency: [ 500.0 ]\n",
                             "network.yml");
  files.system = write_file(rest,
                            R"({"scheduling-policy": "LIFO", "endpoint-delay": 10, "active-chunks-per-dimension": 1,
"preferred-dataset-splits": 4, "all-reduce-implementation": ["ring"], "all-gather-implementation": ["ring"],
"reduce-scatter-implementation": ["ring"], "all-to-all-implementation": ["ring"],
"collective-optimization": "localBWAware", "local-mem-bw": 50})",
                            "system.json");
  files.remote_memory = write_file(rest, R"({"memory-type": "NO_MEMORY_EXPANSION"})", "remote_memory.json");
  if (!rest.empty()) files.groups = write_file(rest, "", "comm_group.json");
  for (const bool system_only : {false, true})
    (void)fuzz::accepts([&] { (void)config::read({.astra_sim = files, .system_only = system_only}); });
  return 0;
}
