#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <utility>
#include <vector>

#include "orrery/base/ids.hpp"
#include "orrery/topology/dimension.hpp"

namespace orrery::topology {

/// What the links of an NPU in a dimension are like: factors of what the dimension says.
struct Port {
  double bandwidth = 1;
  double latency = 1;

  friend bool operator==(const Port&, const Port&) = default;
};

/// What passes between two ports takes what the slower of them allows, in bandwidth and in latency.
Port slower(const Port& a, const Port& b);

/// Something in a dimension that is not as the dimension says: ports of NPUs, or a failed link between two of them.
struct LinkFault {
  std::uint32_t dimension = 0;
  std::vector<NpuId> npus;  ///< of a failed link: its two ends
  Port port;                ///< multiplies what other faults make of the same ports
  bool failed = false;
};

/// The links that are not as their dimensions say (docs/model.md, 3). Default: there are none.
class Links {
 public:
  Links() = default;
  explicit Links(std::span<const Dimension> dimensions);

  /// Throws Error (bad_input) that says why: a dimension or an NPU that is not there, a factor out of range, ends that
  /// no link joins, a failed link that nothing leads around. O(NPUs).
  void add(const LinkFault& fault);

  /// Every link is as its dimension says.
  bool empty() const { return !any_; }
  bool has_ports(std::uint32_t d) const { return any_ && !dimensions_[d].kind_of.empty(); }
  bool has_failed(std::uint32_t d) const { return any_ && !dimensions_[d].failed.empty(); }
  /// In the line of dimension d in which the NPU is.
  bool has_failed(std::uint32_t d, NpuId npu) const { return failed_around(d, npu) != nullptr; }

  /// The NPU's kind of port in dimension d: 0 is what the dimension says; equal numbers are equal ports.
  std::uint16_t kind_of_port(std::uint32_t d, NpuId npu) const {
    return has_ports(d) ? dimensions_[d].kind_of[npu.index()] : std::uint16_t{0};
  }
  const Port& port(std::uint32_t d, std::uint16_t kind) const { return dimensions_[d].ports[kind]; }
  /// No port of dimension d has a smaller factor of latency; 1 at the most.
  double least_latency(std::uint32_t d) const;

  /// Hops between two NPUs of a line of dimension d, `regular` where all its links work. A Ring leads the other way
  /// round where it is cut, FullyConnected by a third NPU.
  std::uint32_t hops(std::uint32_t d, NpuId from, NpuId to, std::uint32_t regular) const;
  /// In a line of dimension d that has a failed link: the coordinate of the NPU that is next on that way. In
  /// FullyConnected the third NPU is the one with the lowest coordinate.
  std::uint32_t next_step(std::uint32_t d, NpuId from, NpuId to) const;

 private:
  using Pair = std::pair<std::uint32_t, std::uint32_t>;  ///< coordinates that a link joins, the lower one first
  struct PerDimension {
    Dimension dimension;
    std::uint32_t stride = 1;
    std::vector<Port> ports = {{}};             ///< of each kind
    std::vector<std::uint16_t> kind_of;         ///< [num_npus], or empty: all 0
    std::map<NpuId, std::vector<Pair>> failed;  ///< by the first NPU of the line
  };

  const std::vector<Pair>* failed_around(std::uint32_t d, NpuId npu) const;
  static std::uint32_t place_in_row(const Pair& cut, std::uint32_t size, std::uint32_t coordinate);
  void add_ports(PerDimension& dimension, const LinkFault& fault);
  void add_failed(PerDimension& dimension, const LinkFault& fault);

  std::vector<PerDimension> dimensions_;
  std::uint32_t num_npus_ = 1;
  bool any_ = false;
};

}  // namespace orrery::topology
