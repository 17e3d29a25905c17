#pragma once

#include <filesystem>
#include <vector>

#include "orrery/trace/store.hpp"

namespace orrery::trace {

/// A trace of a file that is looked at without its system.
struct LoneTrace {
  NpuTrace trace;
  NpuId npu;  ///< 0 if the file does not say whose trace it is
};

/// A file and the traces that it holds.
struct LoneFile {
  std::filesystem::path path;
  Store store;
  std::vector<LoneTrace> traces;  ///< at least one
  bool names_owners = false;      ///< the file says whose traces it holds
};

/// Reads all traces of a file without its system. Throws Error (bad_input) for what is wrong with it. Cost O(bytes).
LoneFile read_lone_file(const std::filesystem::path& path, ReadOptions options);

}  // namespace orrery::trace
