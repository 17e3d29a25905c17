#pragma once

#include <cstddef>
#include <filesystem>
#include <optional>

#include "orrery/base/faults.hpp"
#include "orrery/base/ids.hpp"
#include "orrery/config/configuration.hpp"
#include "orrery/run/progress.hpp"
#include "orrery/trace/store.hpp"

namespace orrery::run {

/// Reads the traces of one rank one by one. It prints how many it has read, and gives up when too many cannot be read.
class TraceReader {
 public:
  /// `num_npus`: NPUs whose traces it will be asked for.
  TraceReader(const config::RunOptions& options, Rank here, std::size_t num_npus)
      : progress_(options, here, num_npus) {}

  /// Reads the trace of an NPU into a store. Returns none if it cannot be read, or if the reader has given up.
  std::optional<trace::NpuTrace> read(const std::filesystem::path& file, NpuId npu, trace::Store& store,
                                      Faults& faults);

 private:
  ReadingLine progress_;
  std::size_t num_read_ = 0, num_unreadable_ = 0;
};

}  // namespace orrery::run
