#include <algorithm>
#include <string>

#include "orrery/results/breakdown.hpp"
#include "tables.hpp"

namespace orrery::results {
namespace {

constexpr std::size_t rows_together = 1 << 16;

}  // namespace

void write_breakdown(Output& output, const RunDescription& run, const NpuRecords& npus, Time end) {
  if (run.status != Status::complete) return;
  output.on_root([&](File& file) {
    file.group("/breakdown",
               "where each NPU's time goes from 0 to the end of the simulation; the columns of a row add "
               "up to the attribute simulated_time of the file, exactly");
    file.scale("/breakdown/npu", npus.size(), {"1", "NPU", "number of the NPU"});
    for (std::size_t part = 0; part < num_breakdown_parts; ++part) {
      const std::string path = "/breakdown/" + std::string(breakdown_name(part));
      file.create<std::int64_t>(path, npus.size(), {"ps", breakdown_name(part), breakdown_text(part)},
                                File::Layout::compressed);
      file.attach(path, "/breakdown/npu");
      for (std::size_t first = 0; first < npus.size(); first += rows_together)
        file.write<std::int64_t>(
            path, first,
            npus.column<std::int64_t>(first, std::min(rows_together, npus.size() - first),
                                      [&](const auto& npu) { return breakdown_of(npu, end)[part].ps(); }));
    }
  });
}

}  // namespace orrery::results
