#include <string>
#include <vector>

#include "orrery/memory/record.hpp"
#include "tables.hpp"

namespace orrery::results {
namespace {

double utilisation_of(const memory::MemoryStageRecord& stage, Time simulated_time) {
  const double available = static_cast<double>(stage.servers) * static_cast<double>(simulated_time.ps());
  return available > 0 ? static_cast<double>(stage.busy.ps()) / available : 0;
}

void write_stages(File& file, std::span<const memory::MemoryStageRecord> stages, Time simulated_time) {
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
    utilisation.push_back(utilisation_of(stage, simulated_time));
  }
  file.group("/memory", "one row per stage of the hierarchical pool, from the memory to the NPUs");
  file.scale("/memory/stage", stages.size(), {"1", "stage", "number of the stage, counted from the memory"});
  file.strings("/memory/name", names, {"1", "name", "name of the stage's servers"});
  file.column<std::uint32_t>("/memory/servers", servers, {"1", "servers", "servers that work in parallel"});
  file.column<std::uint64_t>("/memory/bytes", bytes, {"byte", "bytes", "bytes that passed the stage"});
  file.column<std::int64_t>("/memory/busy_time", busy_time,
                            {"ps", "busy time", "busy time, summed over the servers of the stage"});
  file.column<double>("/memory/utilisation", utilisation,
                      {"1", "utilisation", "busy time over the product of servers and simulated time"});
  for (const char* name : {"name", "servers", "bytes", "busy_time", "utilisation"})
    file.attach(std::string("/memory/") + name, "/memory/stage");
}

}  // namespace

void write_memory(Output& output, std::span<const memory::MemoryStageRecord> mine, Time simulated_time) {
  const auto stages = output.world().gather(mine, Rank(0));
  output.on_root([&](File& file) {
    if (!stages.empty()) write_stages(file, stages, simulated_time);
  });
}

}  // namespace orrery::results
