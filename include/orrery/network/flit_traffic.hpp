#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "orrery/network/flit_rules.hpp"

namespace orrery::network {

/// To which NPU each NPU of a network of flits sends.
struct FlitPattern {
  std::string_view name;
  std::string_view help;  ///< one line
  /// Returns the destination of an NPU; `draw` is a random number.
  std::uint32_t (*destination)(std::uint32_t npu, std::uint32_t width, std::uint32_t height, std::uint64_t draw);
  bool needs_square = false;
  bool needs_rows = false;  ///< the crossbar has none

  /// Returns all patterns.
  static std::span<const FlitPattern> all();
};

/// Traffic that all NPUs of one group of a network of flits offer.
struct FlitTraffic {
  FlitShape shape = FlitShape::mesh;
  std::uint32_t width = 8, height = 8;
  FlitRules rules;
  const FlitPattern* pattern = nullptr;
  double rate = 0.1;                ///< flits that each NPU offers in a cycle, 0 to 1
  std::uint64_t warm_up = 3000;     ///< cycles before the measurement
  std::uint64_t measured = 20'000;  ///< cycles of the measurement
  std::uint32_t seed = 1;
};

/// What became of the packets that began during the measurement.
struct FlitTrafficFigures {
  std::uint64_t packets = 0;     ///< number that began and arrived
  double latency = 0;            ///< mean cycles from the begin of a packet to the arrival of its last flit
  std::uint64_t latency_99 = 0;  ///< cycles that 99 % of the packets do not exceed
  std::uint64_t latency_most = 0;
  double accepted = 0;          ///< flits that each NPU took in a cycle of the measurement
  double routers = 0;           ///< routers that a flit passed, in the mean
  bool is_saturated = false;    ///< packets are left that the network could not take in
  std::uint64_t flit_hops = 0;  ///< routers that all flits passed
  std::uint64_t cycles = 0;     ///< all that were simulated
};

/// Simulates the traffic. Each NPU begins a packet in each cycle with the probability rate / packet. After the
/// measurement no packets begin, and those under way arrive, unless they take more than ten times as long. The rules
/// are valid. O(flit-hops + cycles * NPUs).
FlitTrafficFigures simulate_traffic(const FlitTraffic& traffic);

}  // namespace orrery::network
