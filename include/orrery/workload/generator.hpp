#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "orrery/base/ids.hpp"
#include "orrery/compute/model.hpp"
#include "orrery/trace/store.hpp"
#include "orrery/workload/description.hpp"

namespace orrery::workload {

/// Makes the traces of these NPUs without writing a file. NPUs of one pipeline stage share a structure. Throws Error
/// (bad_input) as Description::validate does. Cost O(nodes) for each stage among the NPUs + O(groups + peers) for each
/// NPU + O(members) for each of their groups.
/// Compute nodes have the durations that `estimates` gives, if there is one.
std::vector<trace::NpuTrace> assemble(const Description& description, std::span<const NpuId> npus, trace::Store& store,
                                      const compute::ComputeModel* estimates = nullptr);

/// Returns the doubts of the model about its estimates, once for each operator. Cost O(operators).
std::vector<std::string> doubts(const Description& description, const compute::ComputeModel& estimates);

/// Writes PREFIX.<npu>.et (Chakra, version 0.0.4) for every NPU, and the groups to PREFIX.json. Makes the folder if
/// need be. Replaces files that exist only with `force`, and only when all new ones are complete. Throws Error
/// (bad_input, output). Compute nodes have the durations that `estimates` gives, if there is one. The metadata name
/// `precision`, unless it is empty. Cost O(NPUs * nodes).
void write_traces(const Description& description, const std::filesystem::path& prefix, bool force = false,
                  const compute::ComputeModel* estimates = nullptr, std::string_view precision = {});

}  // namespace orrery::workload
