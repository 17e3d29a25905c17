#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "groups.hpp"
#include "orrery/base/error.hpp"
#include "orrery/base/faults.hpp"
#include "orrery/base/notices.hpp"
#include "orrery/trace/graph.hpp"
#include "orrery/trace/store.hpp"
#include "parsed_trace.hpp"
#include "tensor_lists.hpp"

namespace orrery::trace {

/// What a trace says, apart from what depends on the NPU that executes it.
struct TraceContents {
  /// An entry of the NPU's tables, with the place of the node that used it first.
  struct FirstUse {
    std::uint32_t value = 0;
    Place place;                               ///< place of the NPU for which the file was read first
    std::optional<RegularGroup> regular = {};  ///< group whose members follow from the NPU; value is its name
  };

  Graph graph;
  Labels labels;
  std::uint64_t first_id = 0;
  std::vector<FirstUse> groups;                            ///< [num_group_slots] GroupIds
  std::vector<FirstUse> peers;                             ///< [num_peer_slots] NPUs, in range
  std::shared_ptr<const std::vector<std::uint64_t>> tags;  ///< [num_tag_slots]; traces of a file may share them
  std::shared_ptr<const RecordedTime> recorded;            ///< ParsedTrace::recorded
  std::optional<FirstUse> own_end;  ///< the NPU at which messages of this trace start and end, if a node says so
  Notices notices;
};

/// Makes the graph of a parsed trace: orders its nodes by ids, applies the policy of dependencies, looks up groups and
/// checks every node. `tensors` serves one trace after the other. A node that cannot be what it says is a fault; with
/// faults, what is returned has no use. Cost O(nodes log nodes + dependencies).
TraceContents make_contents(const ParsedTrace& parsed, Groups& groups, const ReadOptions& options, TensorLists& tensors,
                            Faults& faults);

}  // namespace orrery::trace
