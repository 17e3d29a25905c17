#include "memory_table.hpp"

#include <cstdint>
#include <string>
#include <vector>
#include "orrery/memory/record.hpp"

namespace orrery::results {

void write_memory(File& file, std::span<const memory::MemoryStageRecord> stages, Time simulated_time) {
  std::vector<std::string> names;
  std::vector<std::uint32_t> servers;
  std::vector<std::uint64_t> bytes;
  std::vector<std::int64_t> busy_time;
  std::vector<double> utilisation;
  for (const auto& stage : stages) {
    names.emplace_back(stage.name());
    servers.push_back(stage.servers);
    bytes.push_back(stage.bytes.count());
    busy_time.push_back(stage.busy.ps());
    const double available = static_cast<double>(stage.servers) * static_cast<double>(simulated_time.ps());
    utilisation.push_back(available > 0 ? static_cast<double>(stage.busy.ps()) / available : 0);
  }
  file.group("/memory", "one row per stage of the hierarchical pool, from the memory to the NPUs");
  file.scale("/memory/stage", stages.size(), {"1", "stage", "place on the way from the memory"});
  file.strings("/memory/name", names, {"1", "name", "what its servers are"});
  file.column<std::uint32_t>("/memory/servers", servers, {"1", "servers", "that serve side by side"});
  file.column<std::uint64_t>("/memory/bytes", bytes, {"byte", "bytes", "that have passed"});
  file.column<std::int64_t>("/memory/busy_time", busy_time, {"ps", "busy time", "of its servers, added up"});
  file.column<double>("/memory/utilisation", utilisation,
                      {"1", "utilisation", "busy time over servers times simulated time"});
  for (const char* name : {"name", "servers", "bytes", "busy_time", "utilisation"})
    file.attach(std::string("/memory/") + name, "/memory/stage");
}

}  // namespace orrery::results
