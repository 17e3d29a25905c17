#pragma once

#include <cstdint>

#include "orrery/collective/collective.hpp"
#include "orrery/trace/graph.hpp"

namespace orrery::executor {

/// What an event of the kernel means here.
enum class EventKind : std::uint16_t {
  start,         ///< to an NPU, once, at time 0
  complete,      ///< to an NPU: node `node` is done
  data,          ///< to an NPU: a message from `source` with tag `node` (folded: its stream there) and `detail` bytes
  received,      ///< what `data` becomes once it is matched: node `node`, posted at `detail` ps, is done
  grant,         ///< to an NPU (rendezvous): `source` is ready to receive with tag `node` (folded: as above)
  granted,       ///< what `grant` becomes once it is matched: the data of node `node` leave
  access,        ///< to a memory server: NPU `source` wants `detail` bytes for its node `node`
  group_access,  ///< the same for its part of an access of a group; what it is is kept in MemoryServers
  gathered,      ///< to a hierarchical pool, by itself: the moment of its requests is over
  // Of the congestion-aware network; messages are kept in Traffic.
  pass,     ///< to a link: message `node` is there
  arrived,  ///< to an NPU: message `node` is there
  sent,     ///< to an NPU: the message of its send `node` is at its destination
  wake,     ///< to an NPU, by itself: service `detail` of its collective `node` goes on
};

/// Chakra's collective type as the engine's.
collective::Kind engine_kind(trace::CollectiveKind kind);

}  // namespace orrery::executor
