#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <vector>

#include "orrery/gpu/options.hpp"
#include "orrery/gpu/plan_programs.hpp"
#include "orrery/gpu/record.hpp"
#include "orrery/network/link_delays.hpp"
#include "orrery/npu/run_context.hpp"
#include "orrery/topology/fabric.hpp"

namespace orrery::npu {

/// What the NPUs of a rank share whose thread blocks carry out collectives.
class GpuSystem {
 public:
  /// `run` has Options::gpu, and outlives it.
  explicit GpuSystem(const RunContext& run)
      : options(*run.options.gpu),
        programs(options),
        fabric_(run.topology()),
        delays_(fabric_, run.delays.rounding()) {}

  /// Returns how long `wire` bytes hold the first link of the way between two NPUs.
  Time holds(NpuId from, NpuId to, std::uint64_t wire) {
    const topology::LinkId link = fabric_.first(from, to);
    Known& known = known_[(link.value() * std::uint64_t{31} + wire) % known_.size()];
    if (known.wire != wire || known.link != link) known = {wire, link, delays_.holds(fabric_.find(link), Bytes(wire))};
    return known.time;
  }
  /// Returns whether one switch joins two NPUs that can add up and multiply data.
  bool are_at_a_switch(NpuId a, NpuId b) const;

  const gpu::Options& options;
  gpu::PlanPrograms programs;
  std::vector<gpu::KernelRecord> kernels;  ///< of recorded iterations, in the order of their ends here

 private:
  struct Known {
    std::uint64_t wire = ~std::uint64_t{0};
    topology::LinkId link;
    Time time;
  };
  topology::Fabric fabric_;
  network::LinkDelays delays_;
  std::array<Known, 256> known_;  // times of the last sizes
};

}  // namespace orrery::npu
