#pragma once

#include <cstddef>
#include <vector>

#include "orrery/base/ids.hpp"
#include "orrery/base/time.hpp"
#include "orrery/trace/graph.hpp"

namespace orrery::npu {

/// Says whether a collective yields its bandwidth to those without a negative priority.
inline bool yields(const trace::Graph& graph, NodeId id) { return graph.priority_of(id) < 0; }

/// Collectives of one NPU that yield under Options::dimension_streams. Others of the same set of dimensions take what
/// they need as if those that yield were not there. One that yields ends when the dimensions have been free of others
/// for as long as it takes alone: at its end, what others have used since its last member came is owed to it.
///
/// The NPU decides by itself, from ends that it has handled, so results do not depend on ranks. A collective that is
/// under way when one that yields ends takes nothing from it. The delay only grows, so all bounds stay bounds.
class Yielding {
 public:
  explicit Yielding(std::size_t num_sets) : sets_(num_sets) {}

  /// Begins a collective that yields. There is one at a time in a set.
  void begin(std::size_t set) { sets_[set].is_under_way = true; }
  /// Counts one of the others, which has used the set's dimensions.
  void count(std::size_t set, Time from, Time to);
  /// Returns what is owed to the collective that would end at `now` and whose last member came at `since`: a later end
  /// asks again. Nothing is owed to one that ends.
  Time take_owed(std::size_t set, Time since, Time now);

 private:
  struct Use {
    Time from, to;
  };
  struct Set {
    bool is_under_way = false;
    std::vector<Use> uses;  ///< while one is under way that yields
  };
  std::vector<Set> sets_;
};

}  // namespace orrery::npu
