#include "orrery/cost/cost.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "orrery/base/error.hpp"

namespace orrery::cost {
namespace {

using topology::Dimension;
using topology::Shape;

constexpr double gibi = 1.073741824;  // GB

/// The prices of tiers by bandwidth, as published with COMET's simulator.
Prices prices_by_bandwidth() {
  Prices prices;
  prices.source = "a test";
  prices.tiers = {{.name = "package", .link = 4, .switch_port = 13},
                  {.name = "node", .link = 4, .switch_port = 13},
                  {.name = "pod", .link = 7.4, .switch_port = 23.7, .nic = 47.8}};
  prices.bandwidth_unit = Bandwidth::from_bytes_per_ns(gibi);
  return prices;
}

Dimension dimension(const char* shape, std::uint32_t size, double bandwidth, std::uint32_t links = 1) {
  return {.shape = Shape(shape), .size = size, .bandwidth = Bandwidth::from_bytes_per_ns(bandwidth), .links = links};
}

// COMET's cluster: 16 x 64 NPUs on switches, with 6 links of 25 GiB/s and one of 12.5 GiB/s each. The published cost of
// its network is 3,621,120 USD, of six items.
TEST(Cost, CometsNetworkCostsWhatIsPublished) {
  Prices prices = prices_by_bandwidth();
  prices.chosen = {"package", "pod"};
  const std::vector<Dimension> dimensions{dimension("Switch", 16, 25 * gibi, 6), dimension("Switch", 64, 12.5 * gibi)};
  const Hardware hardware = hardware_of(prices, dimensions, Bytes(0));
  const std::vector<std::pair<std::string, double>> items{{"package links", 614400},
                                                          {"package switch ports", 1996800},
                                                          {"pod links", 94720},
                                                          {"pod switch ports", 303360},
                                                          {"pod NICs", 611840}};
  EXPECT_EQ(hardware.items, items);
  EXPECT_EQ(hardware.capex(), 3621120);
}

// A ring of 4 in each of 8 groups, 10 GB/s per link: each NPU has two links. With 2 USD per GB/s all of them cost
// 32 x 2 x 10 x 2 = 1280 USD, and half of it if the two ends share the price. A ring of 2 has one link per NPU. NICs
// and ports are for shapes with switches.
TEST(Cost, LinksOfPairsAreCountedAtEachEndOrShared) {
  Prices prices;
  prices.tiers = {{.name = "a", .link = 2, .switch_port = 5, .nic = 7}, {.name = "b"}};
  std::vector<Dimension> dimensions{dimension("Ring", 4, 10), dimension("Switch", 8, 1)};
  EXPECT_EQ(hardware_of(prices, dimensions, Bytes(0)).capex(), 1280);
  prices.pair_share = 0.5;
  EXPECT_EQ(hardware_of(prices, dimensions, Bytes(0)).capex(), 640);
  dimensions[0] = dimension("Ring", 2, 10);
  EXPECT_EQ(hardware_of(prices, dimensions, Bytes(0)).capex(), 16 * 1 * 10 * 2 / 2);
  dimensions[0] = dimension("FullyConnected", 4, 10);
  EXPECT_EQ(hardware_of(prices, dimensions, Bytes(0)).capex(), 32 * 3 * 10 * 2 / 2);
}

// 1,024 NPUs in hosts of 8 on leaf switches of 32 and spine switches of 64 ports: 128 hosts, 32 + 16 switches, as a
// public calculation of August 2024 has them.
TEST(Cost, AClusterByParts) {
  Prices prices;
  prices.host = {.npus = 8, .price = 310000, .cables = 20480, .facility = 50000, .power = 4600};
  prices.tiers = {{.name = "node"},
                  {.name = "leaf", .switch_price = 36000, .switch_ports = 32, .switch_power = 1000},
                  {.name = "spine", .switch_price = 36000, .switch_ports = 64, .nic_power = 10}};
  const std::vector<Dimension> dimensions{dimension("Switch", 8, 450), dimension("Switch", 32, 50),
                                          dimension("Switch", 4, 50)};
  const Hardware hardware = hardware_of(prices, dimensions, Bytes(0));
  EXPECT_EQ(hardware.capex(), 50429440);
  EXPECT_EQ(hardware.constant_power, 128 * 4600 + 32 * 1000 + 1024 * 10);
}

/// Returns the number of things that an item of a hardware pays for at this price each; 0 if it has no such item.
double count_of(const Hardware& hardware, const std::string& item, double price) {
  for (const auto& [name, sum] : hardware.items)
    if (name == item) return sum / price;
  return 0;
}

// Switches of 64 ports: with as many links up as down a leaf switch has 32 NPUs, and 1,024 NPUs need 32 of them and 16
// spine switches, with 1,024 links between them. With 3:1 a leaf switch has 48 NPUs and 16 links up: 22 leaf switches,
// and 342 links into 6 spine switches. NICs and links into the leaf switches are as many. 7:1: 56 NPUs, 19 and 3.
TEST(Cost, SwitchesAndOpticsFollowOversubscription) {
  Prices prices;
  prices.tiers = {{.name = "node"},
                  {.name = "leaf", .nic = 1, .switch_price = 100, .switch_radix = 64, .optics = 10},
                  {.name = "spine", .switch_price = 100, .switch_radix = 64, .optics = 10}};
  std::vector<Dimension> dimensions{dimension("Switch", 8, 450), dimension("Switch", 32, 50),
                                    dimension("Switch", 4, 50)};
  const auto counts = [&](double oversubscription) {
    dimensions[2].oversubscription = oversubscription;
    const Hardware hardware = hardware_of(prices, dimensions, Bytes(0));
    EXPECT_EQ(count_of(hardware, "leaf NICs", 50), 1024);
    EXPECT_EQ(count_of(hardware, "leaf optics", 10), 1024);
    return std::vector<double>{count_of(hardware, "leaf switches", 100), count_of(hardware, "spine optics", 10),
                               count_of(hardware, "spine switches", 100)};
  };
  EXPECT_EQ(counts(1), (std::vector<double>{32, 1024, 16}));
  EXPECT_EQ(counts(3), (std::vector<double>{22, 342, 6}));
  EXPECT_EQ(counts(7), (std::vector<double>{19, 147, 3}));
}

// A fat tree of switches of 8 ports for 64 NPUs: 4 pods of 4 edge and 4 aggregation switches, and 16 core switches,
// with links at three levels. With 2:1 there are half as many aggregation and core switches, and links above the edge.
TEST(Cost, FatTreesHaveTheSwitchesOfTheirLevels) {
  Prices prices;
  prices.tiers = {{.name = "tree", .switch_price = 100, .switch_radix = 8, .optics = 10}};
  std::vector<Dimension> dimensions{dimension("FatTree", 64, 50)};
  dimensions[0].parameters["ports"] = 8;
  const auto counts = [&](double oversubscription) {
    dimensions[0].oversubscription = oversubscription;
    const Hardware hardware = hardware_of(prices, dimensions, Bytes(0));
    return std::pair{count_of(hardware, "tree switches", 100), count_of(hardware, "tree optics", 10)};
  };
  EXPECT_EQ(counts(1), (std::pair{16.0 + 16 + 16, 3.0 * 64}));
  EXPECT_EQ(counts(2), (std::pair{16.0 + 8 + 8, 2.0 * 64}));
}

// 4 NPUs of 100 W and 20 W, which compute for a quarter of 10 s, and a host of 60 W, with a power usage effectiveness
// of 1.5: (4 x 40 + 60) x 1.5 = 330 W and 3,300 J. 1,000 USD in 2 years at a utilisation of one half.
TEST(Cost, AStepPaysForItsTimeAndEnergy) {
  Hardware hardware;
  hardware.num_npus = 4;
  hardware.items = {{"all", 1000}};
  hardware.constant_power = 60;
  hardware.npu = {.busy_power = 100, .idle_power = 20};
  hardware.operation = {.pue = 1.5, .electricity = 0.36, .lifetime_years = 2, .utilisation = 0.5};
  const StepCost cost = cost_of_step(hardware, 10, 0.25);
  EXPECT_DOUBLE_EQ(cost.power.value(), 330);
  EXPECT_DOUBLE_EQ(cost.energy.value(), 3300);
  EXPECT_DOUBLE_EQ(cost.price.value(), 1000.0 / (2 * 8760 * 3600 * 0.5) * 10 + 3300 / 3.6e6 * 0.36);
  hardware.npu.rent = 3.6;
  EXPECT_DOUBLE_EQ(cost_of_step(hardware, 10, 0.25).price.value(), 4 * 3.6 / 3600 * 10);
}

// Nothing is guessed: without one of the powers there is no energy, without a lifetime or rent no price of a step, and
// without any price no price of the system.
TEST(Cost, WhatHasNoPriceIsNotKnown) {
  const std::vector<Dimension> dimensions{dimension("Ring", 4, 10)};
  Prices prices;
  prices.npu.busy_power = 100;
  StepCost cost = cost_of_step(hardware_of(prices, dimensions, Bytes(0)), 1, 1);
  EXPECT_FALSE(cost.capex || cost.power || cost.energy || cost.price);
  prices.npu.idle_power = 10;
  prices.npu.memory = 5;
  prices.operation.electricity = 1;
  cost = cost_of_step(hardware_of(prices, dimensions, Bytes(16'000'000'000)), 1, 1);
  EXPECT_EQ(cost.capex, 4 * 16 * 5);
  EXPECT_EQ(cost.energy, 400);
  EXPECT_FALSE(cost.price);
}

/// Returns what is refused of these prices for a network of three rings.
std::string refusal(const Prices& prices) {
  try {
    (void)tiers_of(prices, 3);
  } catch (const Error& error) {
    return error.what();
  }
  return {};
}

// Without a choice the outermost dimension has the last tier. A tier that is not there, or too few, are refused with
// the tiers that are there.
TEST(Cost, TiersBelongToDimensions) {
  Prices prices = prices_by_bandwidth();
  EXPECT_EQ(tiers_of(prices, 2).front()->name, "node");
  prices.chosen = {"node", "node", "pod"};
  EXPECT_EQ(refusal(prices), "");
  prices.chosen.back() = "rack";
  EXPECT_NE(refusal(prices).find("'rack'; expected a tier of cost.network: package, node, pod"), std::string::npos);
  prices.chosen.pop_back();
  EXPECT_NE(refusal(prices).find("one for each of the 3 dimensions"), std::string::npos);
  prices.chosen.clear();
  prices.tiers.pop_back();
  EXPECT_NE(refusal(prices).find("found 2 tiers (package, node)"), std::string::npos);
}

}  // namespace
}  // namespace orrery::cost
