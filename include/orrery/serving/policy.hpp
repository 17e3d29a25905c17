#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <unordered_set>

#include "orrery/base/registry.hpp"
#include "orrery/serving/request.hpp"

namespace orrery::serving {

/// The router's knowledge of an instance: requests sent, and reports received.
struct InstanceView {
  std::uint32_t open_requests = 0;              ///< sent and not reported finished
  std::uint64_t open_tokens = 0;                ///< tokens of their prompts
  std::uint32_t waiting = 0, running = 0;       ///< as last reported
  std::uint32_t under_way = 0;                  ///< sent, and not at the instance when that report was made
  std::unordered_set<std::uint64_t> keys = {};  ///< keys of the prompts sent; kept for policies that look at them
};

/// What a policy may look at.
struct Choice {
  const Requests& requests;
  std::uint32_t request = 0;
  std::span<const std::uint32_t> pool = {};  ///< numbers of the instances that may take it, ascending
  std::span<const InstanceView> views = {};  ///< [instances]
  std::uint64_t turn = 0;                    ///< choices made before for the role
  std::uint32_t block = 16;
  std::uint64_t seed = 1;
};

/// How a router chooses the instance of a request.
struct Policy {
  std::string_view name, help;
  bool looks_at_instances = true;  ///< the choice depends on what instances report
  bool looks_at_counts = false;    ///< the choice depends on the numbers that wait and run
  bool looks_at_keys = false;      ///< the choice depends on the prompts sent
  /// Returns a position in the pool. Ties go to the lowest number.
  std::size_t (*choose)(const Choice& choice) = nullptr;

  static std::span<const Policy* const> registry();
};

using PolicyName = Registered<Policy>;

}  // namespace orrery::serving
