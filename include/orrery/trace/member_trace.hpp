#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "orrery/base/error.hpp"
#include "orrery/base/quantity.hpp"

namespace orrery::trace {

/// What one member does in a collective that traces spell out, one trace for each member (docs/collectives.md, Custom
/// collectives).
struct MemberTrace {
  struct Operation {
    enum class Kind : std::uint8_t { send, receive, compute, nothing };
    /// Whole chunks of the collective's data.
    struct Chunks {
      std::uint32_t first = 0;
      std::uint32_t count = 0;
      std::uint32_t of = 0;  ///< number of all chunks; 0: the message has a size of its own
    };

    Kind kind = Kind::nothing;
    std::uint64_t id = 0;
    std::string name;
    std::uint64_t peer = 0;  ///< position of the other member, for a message
    std::uint64_t tag = 0;
    Chunks chunks;
    Bytes size;                               ///< size of a message whose chunks are not given
    Time duration;                            ///< duration of a computation, as recorded
    std::vector<std::uint32_t> dependencies;  ///< earlier operations for which it waits
  };

  std::string file;
  /// The operations, each after those on which it depends, and otherwise in ascending order of ids.
  std::vector<Operation> operations;

  /// Returns where an operation is, for messages.
  Place place(std::uint32_t operation) const;
};

/// Reads the trace of one member, in any format (docs/traces.md). Sizes are whole chunks where a node has
/// msg_chunk_cnt, msg_chunk_idx and total_chunk_cnt, all 0 or more, else comm_size. Throws Error (bad_input) for a file
/// that is no trace, for a cycle, for nodes that are neither messages nor computations (METADATA and INVALID do
/// nothing), and for attributes that are missing or out of range. Cost O(nodes log nodes + dependencies).
MemberTrace read_member_trace(const std::filesystem::path& path);

}  // namespace orrery::trace
