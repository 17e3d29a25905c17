#pragma once

#include <string>
#include <vector>

#include "orrery/gpu/program.hpp"

namespace orrery::gpu {

/// What a search for races found.
struct Races {
  std::vector<std::string> found;  ///< the first ones, one sentence each
  std::uint64_t count = 0;         ///< pairs of operations
  bool is_searched = true;         ///< false: the program has too many blocks
};

/// Finds pairs of operations that use the same bytes, of which one writes them, and that nothing orders. What orders
/// them: the operations of a block if a nop or a barrier stands between them, or if the same threads use the same
/// bytes; words, barriers and semaphores of what stands before a nop there, for what stands behind a nop here; packets,
/// for what they carry. A relaxed word orders a write after a read, but does not make written data seen. Also finds
/// results that may come after the end of the GPU that gets them. The program must be one that execute_untimed
/// executes. Cost O(operations x blocks) in time, and in memory O(blocks^2 + operations that write packets x blocks).
/// Source: vector clocks, as Flanagan and Freund, "FastTrack", PLDI 2009, use them.
Races find_races(const Program& program);

}  // namespace orrery::gpu
