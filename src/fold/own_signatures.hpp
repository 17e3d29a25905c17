#pragma once

#include <cstdint>
#include <vector>

#include "orrery/fold/signatures.hpp"
#include "orrery/npu/run_context.hpp"
#include "orrery/parallel/communicator.hpp"
#include "stream_table.hpp"
#include "structures.hpp"

namespace orrery::fold {

struct OwnSignatures {
  std::vector<std::uint32_t> of_npu;                  ///< [NPUs of this rank] numbers of the signatures
  std::vector<std::uint32_t> structure_of_signature;  ///< [signatures of all ranks]
  SignatureCounts counts;                             ///< counts over all ranks
};

/// Returns the signatures that the NPUs of this rank have by themselves, numbered alike on all ranks. `streams` is null
/// if NPUs do not communicate. Collective. O(NPUs * (uses + streams * dimensions) + distinct signatures of all ranks).
OwnSignatures own_signatures(const npu::RunContext& context, const Structures& structures, const StreamTable* streams,
                             parallel::Communicator& world);

}  // namespace orrery::fold
