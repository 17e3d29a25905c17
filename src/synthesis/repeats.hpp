#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace orrery::synthesis {

/// A part of a sequence: a symbol, or a body that is repeated.
struct Part {
  std::uint32_t symbol = 0;
  std::uint32_t count = 1;                             ///< iterations of `body`
  std::shared_ptr<const std::vector<Part>> body = {};  ///< null: a symbol
  std::uint32_t whole = 1;                             ///< iterations with those that other rotations would have
  std::uint32_t length = 1;                            ///< symbols of all iterations

  bool is_loop() const { return body != nullptr; }
};

/// Finds the loops of a sequence: tandem repeats, the shortest bodies first, and then loops over loops. A body of one
/// or two parts is repeated three times at least, a longer one twice. A loop begins where the least rotation of its
/// body does, so that the same loop is found in the same rotation wherever it stands; what is left of other rotations
/// stays outside. Bodies are `longest` parts at most. O(symbols * longest) for each level of loops.
std::vector<Part> find_loops(std::span<const std::uint32_t> sequence, std::uint32_t longest = 1024);

/// Appends the symbols of parts to `out`. O(symbols).
void flatten(std::span<const Part> parts, std::vector<std::uint32_t>& out);

}  // namespace orrery::synthesis
