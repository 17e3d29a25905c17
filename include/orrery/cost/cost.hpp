#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "orrery/base/quantity.hpp"
#include "orrery/base/time.hpp"
#include "orrery/cost/prices.hpp"
#include "orrery/topology/dimension.hpp"

namespace orrery::cost {

/// Returns [dimensions] the tier of each dimension. Throws Error (bad_input) if a chosen tier has no prices, or if
/// there are fewer tiers than dimensions. Nothing where prices have no tiers.
std::vector<const Tier*> tiers_of(const Prices& prices, std::size_t num_dimensions);

/// What a system costs to buy and to run.
struct Hardware {
  std::uint32_t num_npus = 0;
  std::vector<std::pair<std::string, double>> items;  ///< USD of each part that has a price
  double constant_power = 0;                          ///< W of hosts, switches and NICs
  NpuPrices npu;
  OperationPrices operation;

  /// Returns the sum of the items; nothing if there are none.
  std::optional<double> capex() const;
};
/// Returns the hardware of a system. `local_memory` is the size of an NPU's. Throws as tiers_of. O(dimensions).
Hardware hardware_of(const Prices& prices, std::span<const topology::Dimension> dimensions, Bytes local_memory);

/// The cost of a step. Empty values stand for parts without a price.
struct StepCost {
  std::optional<double> capex;   ///< USD
  std::optional<double> power;   ///< W, the mean over the step, with the facility's part
  std::optional<double> energy;  ///< J of a step
  std::optional<double> price;   ///< USD of a step: rent; or depreciation, and electricity if it has a price
};
/// Returns the cost of a step of this time in which NPUs compute for `busy` of their time (0 to 1). It grows with both,
/// so bounds of times give bounds of costs, if idle NPUs draw no more than busy ones.
StepCost cost_of_step(const Hardware& hardware, double seconds, double busy);

}  // namespace orrery::cost
