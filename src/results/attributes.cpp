#include <fmt/chrono.h>
#include <fmt/format.h>

#include <chrono>
#include <ctime>
#include <string>

#include "format.hpp"
#include "orrery/base/version.hpp"
#include "orrery/parallel/environment.hpp"
#include "tables.hpp"

namespace orrery::results {

void write_attributes(Output& output, const RunDescription& run, Time simulated_time) {
  output.on_root([&](File& file) {
    const auto now = std::chrono::system_clock::to_time_t(std::chrono::system_clock::now());
    file.attribute("/", "format", format::name);
    file.attribute("/", "format_version", format::version);
    file.attribute("/", "created", fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(now)));
    file.attribute("/", "orrery_version", version());
    file.attribute("/", "revision", revision());
    file.attribute("/", "command_line", run.inputs.command_line);
    file.attribute("/", "mpi_library", parallel::library_version());
    file.attribute("/", "hdf5_version", hdf5_version());
    file.attribute("/", "num_ranks", std::int64_t{output.world().size()});
    file.attribute("/", "status", format::status_name(run.status));
    if (run.num_classes) file.attribute("/", "num_classes", std::int64_t{*run.num_classes});
    file.attribute("/", "simulated_time", simulated_time.ps());
    file.attribute("/", "preparation_time", run.preparation_time);
    file.attribute("/", "wall_time", run.wall_time);
  });
}

}  // namespace orrery::results
