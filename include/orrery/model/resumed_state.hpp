#pragma once

#include <cstddef>
#include <functional>
#include <vector>

#include "orrery/base/ids.hpp"
#include "orrery/base/time.hpp"
#include "orrery/checkpoint/piece.hpp"
#include "orrery/npu/resumed_from.hpp"

namespace orrery::model {

/// The state at one time of a folded run whose classes have been split since (docs/folding.md, *Splitting*). Each
/// logical process of this rank goes on from the state of the one that represented it.
struct ResumedState {
  struct Lp {
    LpId lp;                ///< Piece::of_all: what belongs to none
    std::size_t piece = 0;  ///< whose state it takes over
  };

  Time now;                               ///< all events up to this time have been handled
  std::vector<checkpoint::Piece> pieces;  ///< pieces by the ids of the previous run
  std::vector<Lp> lps;                    ///< processes of this rank; all communicators without one here are unused
  /// Returns what an NPU takes over. The result refers to this object's own data.
  std::function<npu::ResumedFrom(NpuId resumed, NpuId resumed_from)> resumed_from;
  std::vector<std::vector<GroupId>> communicators_of;  ///< [communicators before] what they have been split into
};

}  // namespace orrery::model
