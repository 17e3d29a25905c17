#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "orrery/base/ids.hpp"
#include "orrery/topology/dimension.hpp"
#include "orrery/topology/switch_links.hpp"
#include "orrery/topology/wiring.hpp"

namespace orrery::topology {

/// Returns the smaller bandwidth and the larger latency of two ports. A message between them has these.
Port slower(const Port& a, const Port& b);

/// A difference of some links from their dimension: other ports of NPUs, or a failed link between two NPUs.
struct LinkFault {
  std::uint32_t dimension = 0;
  /// Of a failed link: its two ends. Where each NPU has several links to a switch: NPUs of which one link has failed.
  std::vector<NpuId> npus;
  Port port;  ///< factors that multiply those of other faults of the same ports
  bool failed = false;
  /// A switch, whose links are meant, or two, and the links between them; `npus` is then empty.
  std::vector<std::string> switches = {};
};

/// The links that differ from their dimensions (docs/model.md, 3). By default there are none.
class Links {
 public:
  Links() = default;
  explicit Links(std::span<const Dimension> dimensions);

  /// Adds a fault. Throws Error (bad_input) for a dimension, a switch or an NPU that does not exist, a factor out of
  /// range, ends that no link joins, or a failed link that no way leads around. O(NPUs + links of a group).
  void add(const LinkFault& fault);

  /// Returns whether every link is as its dimension says.
  bool empty() const { return !any_; }
  bool has_ports(std::uint32_t d) const { return any_ && !dimensions_[d].kind_of.empty(); }
  bool has_failed(std::uint32_t d) const { return any_ && !dimensions_[d].failed.empty(); }
  /// Returns whether a link of the NPU's group of dimension d has failed.
  bool has_failed(std::uint32_t d, NpuId npu) const { return failed_around(d, npu) != nullptr; }

  /// Returns the number of the NPU's port among the different ports of dimension d. Number 0 has the factors 1.
  std::uint16_t kind_of_port(std::uint32_t d, NpuId npu) const {
    return has_ports(d) ? dimensions_[d].kind_of[npu.index()] : std::uint16_t{0};
  }
  const Port& port(std::uint32_t d, std::uint16_t kind) const { return dimensions_[d].ports[kind]; }
  /// Returns what differs of the links between the switches of the NPU's group of dimension d; null if nothing does.
  const SwitchLinks* between_switches(std::uint32_t d, NpuId npu) const;
  /// Returns these differences in all groups of dimension d, by the first NPU of the group.
  const std::map<NpuId, SwitchLinks>& between_switches(std::uint32_t d) const { return dimensions_[d].switches; }
  /// Returns the smallest factor of latency of the ports of dimension d; 1 at the most.
  double least_latency(std::uint32_t d) const;

  /// Returns the hops between two NPUs of a group of dimension d: `regular` where all links of the group work, else
  /// those of the way around the failed ones.
  std::uint32_t hops(std::uint32_t d, NpuId from, NpuId to, std::uint32_t regular) const;
  /// Returns the position of the next NPU on the way between two NPUs of a group of dimension d that has a failed link.
  std::uint32_t next_step(std::uint32_t d, NpuId from, NpuId to) const;

 private:
  struct PerDimension {
    Dimension dimension;
    std::uint32_t stride = 1;
    std::vector<Port> ports = {{}};         ///< ports of each kind
    std::vector<std::uint16_t> kind_of;     ///< [num_npus], or empty: all 0
    std::shared_ptr<const Wiring> wiring;   ///< none where no link has failed
    std::map<NpuId, FailedLinks> failed;    ///< failed links, by the first NPU of the group
    std::map<NpuId, std::uint32_t> lost;    ///< failed ones of several links side by side, by their NPU
    std::map<NpuId, SwitchLinks> switches;  ///< links between switches, by the first NPU of the group

    std::uint32_t position(NpuId npu) const { return npu.value() / stride % dimension.size; }
    NpuId first_of_group(NpuId npu) const { return NpuId(npu.value() - position(npu) * stride); }
  };

  const FailedLinks* failed_around(std::uint32_t d, NpuId npu) const;
  void add_ports(PerDimension& dimension, const LinkFault& fault);
  void add_failed(PerDimension& dimension, const LinkFault& fault);
  void add_of_switches(PerDimension& dimension, const LinkFault& fault);
  void add_lost(PerDimension& dimension, const LinkFault& fault);

  std::vector<PerDimension> dimensions_;
  std::uint32_t num_npus_ = 1;
  bool any_ = false;
};

}  // namespace orrery::topology
