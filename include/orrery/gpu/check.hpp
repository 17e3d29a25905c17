#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "orrery/collective/options.hpp"
#include "orrery/gpu/plan.hpp"
#include "orrery/gpu/program.hpp"

namespace orrery::gpu {

/// What may go wrong with a program that gives the right results if its operations come in a good order.
struct Findings {
  std::vector<std::string> warnings;  ///< races, one sentence each, at most ten
  std::uint64_t num_races = 0;        ///< pairs of operations
  bool has_race_search = true;        ///< false: the program has too many blocks for it
};

/// Executes a program of a collective without time, in two orders, with marks in place of data (docs/gpu.md, Checks).
/// `message`: bytes of the whole data; `root`: of a broadcast, reduce, gather or scatter. Throws Error (bad_input) with
/// GPU, thread block and operation if blocks wait for ever, if words are left over, if data are used that nobody has
/// written, and if a GPU ends without its result. Cost O(operations x blocks).
Findings check_program(const Program& program, collective::Kind kind, Bytes message, std::uint32_t root = 0);

/// Returns a message that shows the behaviour of a plan: each part of a chunk that blocks share has a few units, and
/// pipelines have three iterations.
Bytes test_message(const Plan& plan);

}  // namespace orrery::gpu
