#pragma once

#include <cstdint>
#include <vector>

#include "orrery/base/ids.hpp"
#include "orrery/base/time.hpp"

namespace orrery::npu {

/// The SMs of a GPU that thread blocks of collectives leave to compute nodes (docs/gpu.md, Computing beside
/// collectives). While blocks hold k of them, a compute node goes on at (sms - k) / sms of its speed. What is left of a
/// node is kept in ticks of full speed, rounded up, so results do not depend on anything but the changes.
class SharedSms {
 public:
  /// A compute node that is under way, and when it ends if nothing changes; max(): no SM is left.
  struct Node {
    NodeId id;
    Time finish;
  };

  explicit SharedSms(std::uint32_t sms) : sms_(sms) {}

  /// Begins a compute node that takes `whole`, above zero, with all SMs. Returns when it ends.
  Time begin(NodeId id, Time whole, Time now);
  /// Takes note that blocks hold so many SMs from now on. Returns the compute nodes whose end changes by that.
  std::vector<Node> hold(std::uint32_t held, Time now);
  /// Ends a compute node that may end now. Returns false if it does not: its end has been put off or brought forward.
  bool end(NodeId id, Time now);

 private:
  struct Work {
    NodeId id;
    Time since;
    Time rest;  ///< with all SMs, at `since`
    Time finish = {};
  };
  Time finish_of(const Work& work) const;

  std::uint32_t sms_;
  std::uint32_t held_ = 0;
  std::vector<Work> under_way_;
};

}  // namespace orrery::npu
