#pragma once

#include <optional>
#include <vector>

#include "dependencies.hpp"
#include "groups.hpp"
#include "orrery/base/notices.hpp"
#include "orrery/trace/graph.hpp"
#include "orrery/trace/store.hpp"
#include "tensor_lists.hpp"

namespace orrery::trace {

/// A trace with all that does not depend on which NPU reads it.
struct Meaning {
  /// A value of the NPU's tables and the node that used it first.
  struct Use {
    std::uint32_t value = 0;
    Place place;  ///< of the NPU that read the file first
  };

  Graph graph;
  Labels labels;
  std::uint64_t first_id = 0;
  std::vector<Use> groups;  ///< [num_group_slots] GroupIds
  std::vector<Use> peers;   ///< [num_peer_slots] NPUs, in range
  std::vector<std::uint64_t> tags;
  std::optional<Use> own_end;  ///< where messages of this trace start and end, if a node says so: all say the same
  Notices notices;
};

/// Judges the nodes and packs them. `tensors` serves one trace after the other. A node that cannot be what it says is a
/// fault; what is returned has no use then. Cost O(nodes + dependencies).
Meaning interpret(const RawTrace& raw, const NodeOrder& order, Edges edges, const Source& source, const NamePool& names,
                  Groups& groups, const ReadOptions& options, TensorLists& tensors, Faults& faults);

}  // namespace orrery::trace
