#pragma once

#include "orrery/collective/options.hpp"
#include "orrery/trace/graph.hpp"

namespace orrery::collective {

/// Returns the kind of a collective of a trace.
Kind kind_of(trace::CollectiveKind kind);

}  // namespace orrery::collective
