#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "orrery/base/error.hpp"
#include "orrery/base/quantity.hpp"

namespace orrery::trace {

/// One member's part of a collective that traces spell out, a trace for each member (docs/collectives.md, Custom
/// collectives).
struct Part {
  struct Step {
    enum class Kind : std::uint8_t { send, receive, compute, nothing };
    /// Whole chunks of the collective's data.
    struct Chunks {
      std::uint32_t first = 0;
      std::uint32_t count = 0;
      std::uint32_t of = 0;  ///< all chunks; 0: the message has a size of its own
    };

    Kind kind = Kind::nothing;
    std::uint64_t id = 0;
    std::string name;
    std::uint64_t peer = 0;  ///< of a message: position of the other member
    std::uint64_t tag = 0;
    Chunks chunks;
    Bytes size;                               ///< of a message whose chunks are not given
    Time duration;                            ///< of a computation, as recorded
    std::vector<std::uint32_t> dependencies;  ///< steps before it
  };

  std::string file;
  std::vector<Step> steps;  ///< in an order in which dependencies come first, of those that may follow the lowest id

  /// Where a step is, for messages.
  Place place(std::uint32_t step) const;
};

/// Sizes are whole chunks where a node has msg_chunk_cnt, msg_chunk_idx and
/// total_chunk_cnt, all 0 or more, else comm_size. Throws Error (bad_input) for what is no Chakra trace, for a cycle,
/// for nodes that are neither messages nor computations (METADATA and INVALID do nothing), and for attributes that are
/// missing or out of range. Cost O(nodes log nodes + dependencies).
Part read_part(const std::filesystem::path& path);

}  // namespace orrery::trace
