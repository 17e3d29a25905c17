#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "orrery/base/quantity.hpp"

namespace orrery::cost {

/// What a tier of a network costs: that of nodes, of racks, of pods.
struct Tier {
  std::string name;
  double link = 0, switch_port = 0, nic = 0;  ///< USD per Prices::bandwidth_unit of an NPU's links
  double switch_price = 0;                    ///< USD
  std::uint32_t switch_ports = 0;          ///< ports of a switch, for the side of the NPUs; 0: switches are not counted
  std::uint32_t switch_radix = 0;          ///< ports of a switch in all directions; 0: switch_ports says how many
  double optics = 0;                       ///< USD for a link into its switches: the cable and both transceivers
  double switch_power = 0, nic_power = 0;  ///< W; a NIC for each NPU

  friend bool operator==(const Tier&, const Tier&) = default;
};

/// What NPUs cost and draw. 0: no price.
struct NpuPrices {
  double price = 0;                       ///< USD
  double memory = 0;                      ///< USD per GB (1e9 bytes) of local memory
  double busy_power = 0, idle_power = 0;  ///< W, while it computes and while it does not
  double rent = 0;                        ///< USD per hour

  friend bool operator==(const NpuPrices&, const NpuPrices&) = default;
};

/// What hosts cost and draw, without their NPUs. 0: no price.
struct HostPrices {
  std::uint32_t npus = 0;                      ///< NPUs of a host; 0: hosts are not counted
  double price = 0, cables = 0, facility = 0;  ///< USD
  double power = 0;                            ///< W

  friend bool operator==(const HostPrices&, const HostPrices&) = default;
};

/// What operation costs.
struct OperationPrices {
  double pue = 1;             ///< power usage effectiveness: power of the facility over that of its computers
  double electricity = 0;     ///< USD per kWh; 0: no price
  double lifetime_years = 0;  ///< years in which the system is paid off; 0: not known
  double utilisation = 1;     ///< share of its lifetime in which the system works

  friend bool operator==(const OperationPrices&, const OperationPrices&) = default;
};

/// Prices of a system. What has no price counts as 0.
struct Prices {
  std::string source, date;  ///< where and when they were found
  NpuPrices npu;
  HostPrices host;
  OperationPrices operation;
  std::vector<Tier> tiers;          ///< from the innermost one outwards
  std::vector<std::string> chosen;  ///< [dimensions] names of tiers; empty: the outermost dimension has the last tier
  Bandwidth bandwidth_unit = Bandwidth::from_bytes_per_ns(1);
  /// Share of the price of a link between two NPUs that each direction counts: 0.5 if prices are those of whole links.
  double pair_share = 1;

  bool empty() const { return source.empty(); }
  friend bool operator==(const Prices&, const Prices&) = default;
};

}  // namespace orrery::cost
