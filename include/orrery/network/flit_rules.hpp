#pragma once

#include <cstdint>

#include "orrery/base/quantity.hpp"

namespace orrery::network {

/// The routers of a network that is simulated flit by flit.
enum class FlitShape : std::uint8_t {
  mesh,      ///< rows and columns of routers, each with one NPU
  torus,     ///< the same, closed to rings
  crossbar,  ///< one router for all NPUs
};

/// When a router passes a packet on.
enum class FlitFlowControl : std::uint8_t {
  wormhole,             ///< a flit goes on as soon as it has a credit
  virtual_cut_through,  ///< a packet gets a virtual channel only with room for all of its flits
};

/// How a router chooses the way of a packet.
enum class FlitRouting : std::uint8_t {
  dor,             ///< x before y
  adaptive_xy_yx,  ///< the first router chooses between x before y and y before x by its credits
};

/// The rules of a network that is simulated flit by flit (docs/flit-networks.md).
struct FlitRules {
  Bytes flit{16};
  std::uint32_t packet = 5;            ///< flits
  std::uint32_t virtual_channels = 4;  ///< number at each port of a router
  std::uint32_t buffer = 8;            ///< flits of a virtual channel
  FlitFlowControl flow_control = FlitFlowControl::wormhole;
  FlitRouting routing = FlitRouting::dor;
  std::uint32_t route = 1;  ///< cycles in which a router computes the route of a packet; 0: the router before did
  std::uint32_t link = 1;   ///< cycles on a link between routers
  std::uint32_t seed = 1;   ///< seed of the draws on ties

  static constexpr std::uint32_t most_virtual_channels = 32;
  static constexpr std::uint32_t most_cycles = 1000;  ///< bound of `route` and `link`

  /// Returns the set of all virtual channels of a port, as a mask.
  std::uint32_t all_channels() const { return ~0U >> (32 - virtual_channels); }
  /// Returns the cycles that the head of a packet takes from one router to the next if nothing else is under way.
  std::uint32_t hop_cycles() const { return route + 2 + 1 + link; }
  /// Returns the cycles from the injection of a packet to the arrival of its last flit if nothing else is under way.
  /// `hops`: links between routers on its way.
  std::uint64_t zero_load(std::uint32_t hops, std::uint32_t flits) const {
    return 2 + std::uint64_t{hops + 1} * (route + 2) + std::uint64_t{hops} * (1 + link) + 2 + flits - 1;
  }

  friend bool operator==(const FlitRules&, const FlitRules&) = default;
};

/// The dimensions of a topology whose groups are simulated flit by flit: one for a crossbar, else two.
struct FlitDimensions {
  std::uint32_t first = 0;  ///< dimension
  std::uint32_t count = 1;
  FlitShape shape = FlitShape::crossbar;
  FlitRules rules;

  bool contains(std::uint32_t dimension) const { return dimension >= first && dimension < first + count; }

  friend bool operator==(const FlitDimensions&, const FlitDimensions&) = default;
};

}  // namespace orrery::network
