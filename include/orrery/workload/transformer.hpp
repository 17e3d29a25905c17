#pragma once

#include <cstdint>
#include <filesystem>

namespace orrery::workload {

/// One training step of a decoder-only transformer in bf16, tensor, pipeline and data parallel. NPU = tensor rank +
/// tensor * (pipeline stage + pipeline * data rank).
struct Transformer {
  std::uint32_t tensor = 4;
  std::uint32_t pipeline = 4;
  std::uint32_t data = 4;
  std::uint32_t layers = 32;        ///< of the whole model; a multiple of `pipeline`
  std::uint32_t micro_batches = 8;  ///< per step and replica, of one sequence each
  std::uint64_t hidden = 4096;      ///< a multiple of `tensor`
  std::uint64_t sequence = 2048;    ///< tokens

  std::uint32_t num_npus() const { return tensor * pipeline * data; }
  /// Throws Error (usage) that names the option.
  void validate() const;
};

/// Writes PREFIX.<npu>.et for every NPU and the groups to PREFIX.json. docs/workloads.md has the formulas. The folder
/// is made if need be. Files that exist are replaced only with `force`, and only when all new ones are complete. Throws
/// Error (output). Cost O(NPUs * layers / pipeline * micro_batches).
void write_traces(const Transformer& model, const std::filesystem::path& prefix, bool force = false);

}  // namespace orrery::workload
