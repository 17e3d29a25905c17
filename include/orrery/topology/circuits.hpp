#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "orrery/base/ids.hpp"
#include "orrery/base/time.hpp"
#include "orrery/topology/topology.hpp"

namespace orrery::topology {

/// A way in which optical switches join NPUs.
struct CircuitConfiguration {
  std::string name;
  /// [positions] NPU that stands there. Position p has the links that NPU p has without circuits.
  std::vector<NpuId> npus;

  friend bool operator==(const CircuitConfiguration&, const CircuitConfiguration&) = default;
};

/// Optical switches as CONFIG.yaml describes them.
struct CircuitOptions {
  std::vector<CircuitConfiguration> configurations;
  std::map<std::string, std::string> groups;  ///< names of groups, or kinds of groups, with their configurations
  Time switching_time;                        ///< for which the ports that change are dark

  friend bool operator==(const CircuitOptions&, const CircuitOptions&) = default;
};

/// Networks that optical switches reconfigure. The links of the dimensions lead from ports of NPUs; a configuration
/// says which NPU stands at which position of the dimensions, and so which ports its circuits join.
class Circuits {
 public:
  /// Throws Error (bad_input) at the key of CONFIG.yaml: a configuration has no NPU for a position, or two; two have
  /// one name; a group names none of them. O(configurations * NPUs * links).
  Circuits(CircuitOptions options, const Topology& topology);

  std::uint32_t num_npus() const { return static_cast<std::uint32_t>(positions_.front().size()); }
  const CircuitOptions& options() const { return options_; }
  Time switching_time() const { return options_.switching_time; }
  /// Returns the key of CircuitOptions::groups that stands for a group: its name, or the part of the name before `_` or
  /// `@`; `all` is a group without a name. Empty if there is none.
  std::string_view key_of_group(std::string_view group) const;
  /// Returns the configuration in which the collectives of a group run; the first one if no key stands for the group.
  std::uint32_t of_group(std::string_view name) const;
  /// Returns the position of an NPU, and the NPU at a position, as ids.
  NpuId position_of(std::uint32_t configuration, NpuId npu) const { return positions_[configuration][npu.index()]; }
  NpuId npu_at(std::uint32_t configuration, NpuId position) const {
    return options_.configurations[configuration].npus[position.index()];
  }
  /// Returns whether a port of the NPU leads to another NPU, or to another switch, in the second configuration than in
  /// the first one. O(links of the NPU).
  bool changes(NpuId npu, std::uint32_t before, std::uint32_t after) const {
    return before != after && circuits_[before][npu.index()] != circuits_[after][npu.index()];
  }

 private:
  void validate(const Topology& topology) const;
  std::vector<std::int64_t> circuits_of(const Topology& topology, std::uint32_t configuration, NpuId npu) const;

  CircuitOptions options_;
  std::vector<std::vector<NpuId>> positions_;                     // [configurations][npus]
  std::vector<std::vector<std::vector<std::int64_t>>> circuits_;  // [configurations][npus][ports] device there
  std::map<std::string, std::uint32_t, std::less<>> of_group_;
};

/// Returns the position of an NPU: that of its number without circuits, which may be null.
inline NpuId position_of(const Circuits* circuits, std::uint32_t configuration, NpuId npu) {
  return circuits == nullptr ? npu : circuits->position_of(configuration, npu);
}

}  // namespace orrery::topology
