#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "orrery/base/ids.hpp"
#include "orrery/base/quantity.hpp"
#include "orrery/base/time.hpp"
#include "orrery/topology/topology.hpp"

namespace orrery::topology {

/// Rate and latency of a circuit.
struct CircuitRate {
  Bandwidth bandwidth;
  double latency_ns = 0;

  friend bool operator==(const CircuitRate&, const CircuitRate&) = default;
};

/// A circuit from one NPU to another one.
struct Circuit {
  NpuId from, to;
  CircuitRate rate;

  friend bool operator==(const Circuit&, const Circuit&) = default;
};

/// A way in which optical switches join NPUs.
struct CircuitConfiguration {
  std::string name;
  /// [positions] NPU that stands there. Position p has the links that NPU p has without circuits.
  std::vector<NpuId> npus;
  std::optional<CircuitRate> rate = {};  ///< rate of all links; none: that of the dimension
  std::vector<Circuit> circuits = {};    ///< circuits that exist; empty: the links of the positions

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
  /// Returns whether the link from an NPU with this number among its links leads elsewhere, or at another rate.
  bool changes_link(NpuId npu, std::uint32_t number, std::uint32_t before, std::uint32_t after) const;

  /// Returns whether any configuration has rates or circuits of its own.
  bool has_rates() const { return has_rates_; }
  /// Returns whether the configuration lists its circuits, over which messages take the fewest.
  bool lists_circuits(std::uint32_t configuration) const { return !next_[configuration].empty(); }
  /// Returns the NPU to which a message at an NPU goes next in a configuration that lists its circuits; the NPU itself
  /// if none leads to the destination.
  NpuId next_npu(std::uint32_t configuration, NpuId at, NpuId destination) const {
    return NpuId(next_[configuration][at.index() * num_npus() + destination.index()]);
  }
  /// Returns the rate of the link from one NPU to another one; none: that of the dimension.
  std::optional<CircuitRate> rate(std::uint32_t configuration, NpuId from, NpuId to) const;
  /// Returns the smallest latency of the configurations with rates of their own, in ns; infinity without any.
  double least_latency_ns() const;

 private:
  /// What a link of an NPU leads to: its number among the NPU's links, the devices at its ends, its rate.
  struct PortOf {
    std::uint32_t number = 0;
    std::array<std::int64_t, 4> ends{};
    CircuitRate rate;

    friend bool operator==(const PortOf&, const PortOf&) = default;
  };

  void validate(const Topology& topology) const;
  void find_routes(std::uint32_t configuration);
  std::vector<PortOf> circuits_of(const Topology& topology, std::uint32_t configuration, NpuId npu) const;
  std::vector<PortOf> listed_circuits_of(std::uint32_t configuration, NpuId npu) const;

  CircuitOptions options_;
  std::vector<std::vector<NpuId>> positions_;               // [configurations][npus]
  std::vector<std::vector<std::vector<PortOf>>> circuits_;  // [configurations][npus][ports]
  std::vector<std::vector<std::uint32_t>> next_;            // [configurations][npus * npus]; empty: links of positions
  std::vector<std::map<std::uint64_t, CircuitRate>> rate_of_;  // [configurations] by from * npus + to
  bool has_rates_ = false;
  std::map<std::string, std::uint32_t, std::less<>> of_group_;
};

/// Returns the position of an NPU: that of its number without circuits, which may be null.
inline NpuId position_of(const Circuits* circuits, std::uint32_t configuration, NpuId npu) {
  return circuits == nullptr ? npu : circuits->position_of(configuration, npu);
}

}  // namespace orrery::topology
