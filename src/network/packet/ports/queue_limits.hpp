#pragma once

#include <cstdint>
#include <vector>

#include "packet/node_services.hpp"

namespace orrery::network {

/// How many bytes may wait for each port: what its link says, otherwise the rules. Ports of hosts have no limit unless
/// their link gives one.
class QueueLimits {
 public:
  static constexpr std::uint64_t none = ~std::uint64_t{0};

  explicit QueueLimits(const NodeServices& services);

  std::uint64_t of(std::size_t port) const { return limits_[port]; }

 private:
  std::vector<std::uint64_t> limits_;  // [ports]
};

}  // namespace orrery::network
