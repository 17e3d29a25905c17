#pragma once

#include <cstdint>

#include "orrery/base/quantity.hpp"
#include "orrery/collective/options.hpp"
#include "orrery/trace/graph.hpp"

namespace orrery::collective {

/// Returns the kind of a collective of a trace.
Kind kind_of(trace::CollectiveKind kind);

/// Returns the bytes of the larger buffer of a collective. Nodes of an all-gather or a gather give the share of a
/// member as their size; a barrier has no bytes.
Bytes whole_buffer(Kind kind, std::uint32_t members, Bytes size);

}  // namespace orrery::collective
