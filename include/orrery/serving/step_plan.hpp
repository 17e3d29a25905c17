#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "orrery/base/ids.hpp"
#include "orrery/base/quantity.hpp"
#include "orrery/base/time.hpp"
#include "orrery/trace/graph.hpp"

namespace orrery::collective {
class MessageProgram;
}

namespace orrery::serving {

/// Computing, and then perhaps a collective.
struct StepPhase {
  Time compute = {};
  bool communicates = false;
  bool among_ranks = false;  ///< true: among data-parallel ranks, false: among tensor-parallel ones
  trace::CollectiveKind kind = {};
  Bytes bytes = {};  ///< bytes of a node, as traces have them
};

/// Equal layers of a stage, or what is before or behind them.
struct PlanSection {
  std::int64_t count = 1;
  std::vector<StepPhase> phases = {};
};

/// A step on one stage of a pipeline: sections in their order.
using StagePlan = std::vector<PlanSection>;

/// Makes the messages of collectives among NPUs of the system.
class CollectivePrograms {
 public:
  virtual ~CollectivePrograms() = default;

  /// Returns the messages of a collective. For two members or more. Throws Error (bad_input) if the algorithms of the
  /// system cannot carry it out. Memoised.
  virtual std::shared_ptr<const collective::MessageProgram> program(std::span<const NpuId> members,
                                                                    trace::CollectiveKind kind, Bytes bytes) = 0;
};

}  // namespace orrery::serving
