#pragma once

#include <cstdint>
#include <vector>

#include "orrery/fold/signatures.hpp"
#include "orrery/npu/run_context.hpp"
#include "stream_table.hpp"

namespace orrery::fold {

struct OwnSignatures {
  std::vector<std::uint32_t> of_npu;  ///< [npus] numbers of the signatures
  SignatureCounts counts;
};

/// Returns the signatures that NPUs have by themselves. `context.npus` are all NPUs, in order. `streams` is null if
/// NPUs do not communicate. O(NPUs * (uses + streams * dimensions)).
OwnSignatures own_signatures(const npu::RunContext& context, const StreamTable* streams);

}  // namespace orrery::fold
