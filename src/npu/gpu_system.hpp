#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "orrery/compute/options.hpp"
#include "orrery/gpu/options.hpp"
#include "orrery/gpu/plan_programs.hpp"
#include "orrery/gpu/record.hpp"
#include "orrery/network/link_delays.hpp"
#include "orrery/npu/run_context.hpp"
#include "orrery/topology/fabric.hpp"
#include "orrery/trace/graph.hpp"
#include "shared_sms.hpp"

namespace orrery::npu {

/// What the NPUs of a rank share whose thread blocks carry out collectives.
class GpuSystem {
 public:
  /// `run` has Options::gpu, and outlives it.
  explicit GpuSystem(const RunContext& run)
      : options(*run.options.gpu),
        programs(options),
        compute_(run.options.compute),
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

  /// Says how much longer a compute node takes while thread blocks hold so many SMs: with the roofline what its
  /// operations and bytes take with the SMs and the bandwidth of memory that are left, else in the ratio of SMs.
  SharedSms::Stretch stretch(const trace::Node& node, std::uint32_t held);

  const gpu::Options& options;
  bool keeps_history = false;  ///< history of kernels is kept for checkpoints
  gpu::PlanPrograms programs;
  std::vector<gpu::KernelRecord> kernels;  ///< kernels of recorded iterations, in the order of their ends here

 private:
  struct Known {
    std::uint64_t wire = ~std::uint64_t{0};
    topology::LinkId link;
    Time time;
  };
  /// What is left of a GPU.
  struct Left {
    compute::Options options;
    std::unique_ptr<const compute::ComputeModel> model;  ///< null: no bandwidth is left
  };
  const Left& left(std::uint32_t held);

  const compute::Options& compute_;
  std::map<std::uint32_t, Left> left_;  // by the SMs that are held
  topology::Fabric fabric_;
  network::LinkDelays delays_;
  std::array<Known, 256> known_;  // times of the last sizes
};

}  // namespace orrery::npu
