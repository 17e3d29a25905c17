#pragma once

#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "orrery/base/archive.hpp"
#include "orrery/base/ids.hpp"
#include "orrery/base/time.hpp"

namespace orrery::npu {

/// What thread blocks of collectives leave of a GPU to compute nodes (docs/gpu.md, Computing beside collectives). While
/// blocks hold k SMs, a compute node goes on at a speed that depends on k. What is left of a node is kept in ticks of
/// full speed, rounded up, so results do not depend on anything but the changes.
class SharedSms {
 public:
  /// A compute node that is under way, and when it ends if nothing changes; max(): no SM is left.
  struct Node {
    NodeId id;
    Time finish;
  };

  /// How many times as long a node takes: `longer` / `whole`, both above 0; `longer` 0: it stands still.
  struct Stretch {
    std::uint64_t longer = 1, whole = 1;
  };
  /// Says how much longer a node takes while blocks hold so many SMs.
  using Stretches = std::function<Stretch(NodeId id, std::uint32_t held)>;

  explicit SharedSms(Stretches stretches) : stretches_(std::move(stretches)) {}

  /// Begins a compute node that takes `whole`, above zero, with all SMs. Returns when it ends.
  Time begin(NodeId id, Time whole, Time now);
  /// Takes note that blocks hold so many SMs from now on. Returns the compute nodes whose end changes by that.
  std::vector<Node> hold(std::uint32_t held, Time now);
  /// Ends a compute node that may end now. Returns false if it does not: its end has been deferred or brought forward.
  bool end(NodeId id, Time now);

  void serialize(Archive& archive) { archive(held_, under_way_); }

 private:
  struct Work {
    NodeId id;
    Time since;
    Time rest;  ///< with all SMs, at `since`
    Stretch stretch;
    Time finish = {};
  };
  static Time finish_of(const Work& work);

  Stretches stretches_;
  std::uint32_t held_ = 0;
  std::vector<Work> under_way_;
};

}  // namespace orrery::npu
