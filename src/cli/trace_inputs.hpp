#pragma once

#include <filesystem>
#include <vector>

#include "option_table.hpp"
#include "options.hpp"
#include "orrery/trace/store.hpp"

namespace orrery::cli {

/// Reads what says how the traces of all NPUs are read, and `force`. Throws Error (usage).
void read_trace_options(const Arguments& arguments, ConvertCommand& command);

/// Returns the files that the inputs name: those of NPUs 0, 1, ... for a name with {npu}. Throws Error (usage) for such
/// a name among several inputs.
std::vector<std::filesystem::path> files_of(const ConvertCommand& command);

/// The traces of all NPUs, in the order of the NPUs.
struct TraceInputs {
  trace::Store store;
  std::vector<trace::NpuTrace> traces;
  std::uint64_t num_nodes = 0;  ///< nodes of all traces
};

/// Reads traces of any format. Says once what was taken for granted. Throws Error (bad_input) for all their faults.
TraceInputs read_trace_inputs(const ConvertCommand& command, const std::vector<std::filesystem::path>& files);

}  // namespace orrery::cli
