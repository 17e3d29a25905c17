#pragma once

#include "orrery/collective/collective.hpp"
#include "orrery/trace/graph.hpp"

namespace orrery::collective {

/// Chakra's collective type as the engine's.
Kind kind_of(trace::CollectiveKind kind);

}  // namespace orrery::collective
