#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "orrery/base/divisor.hpp"
#include "orrery/base/ids.hpp"
#include "orrery/base/quantity.hpp"
#include "orrery/topology/dimension.hpp"
#include "orrery/topology/links.hpp"
#include "orrery/topology/shared_ports.hpp"
#include "orrery/topology/wiring.hpp"

namespace orrery::topology {

/// A stack of dimensions, dimension 0 innermost. An NPU's id is a mixed-radix number of its coordinates, dimension 0
/// fastest (docs/model.md, 3).
class Topology {
 public:
  /// Throws Error (bad_input) that names the dimension: none at all, more than 64, one that is not valid, more than
  /// 2^24 NPUs; or a port, as SharedPorts does. `links` is made for these dimensions.
  explicit Topology(std::vector<Dimension> dimensions, Links links = {}, const PortRates& rates = {});

  std::uint32_t num_npus() const { return num_npus_; }
  std::uint32_t num_dimensions() const { return static_cast<std::uint32_t>(dimensions_.size()); }
  /// Returns a dimension. Its bandwidth is at most that of its port.
  const Dimension& dimension(std::uint32_t d) const { return dimensions_[d]; }
  /// Returns the links and routes of the groups of dimension d, as they are where every link works.
  const Wiring& wiring(std::uint32_t d) const { return *wirings_[d].wiring; }
  /// Returns the differences from the dimensions.
  const Links& links() const { return links_; }
  /// Returns the ports that dimensions share.
  const SharedPorts& ports() const { return ports_; }

  /// Returns the coordinate of `npu` in dimension d, 0 .. size - 1.
  std::uint32_t coordinate(NpuId npu, std::uint32_t d) const {
    return divisors_[d].size.remainder(divisors_[d].stride.quotient(npu.value()));
  }
  /// Returns the difference of the ids of neighbours in dimension d.
  std::uint32_t stride(std::uint32_t d) const { return divisors_[d].stride.value(); }
  /// Returns the hops that a message between two positions of a group of dimension d takes where nothing else is under
  /// way: those of its route, or in a shape of links only Wiring::most_hops. 0 from a position to itself.
  std::uint32_t hops(std::uint32_t d, std::uint32_t from, std::uint32_t to) const {
    if (from == to) return 0;
    const GroupWiring& group = wirings_[d];
    return group.uniform_hops > 0 ? group.uniform_hops : group.wiring->hops(from, to);
  }

  /// Follows the way of a message from a to b through the dimensions in which they differ, the lowest first. Calls
  /// visit(d, hops, port) for each, where `port` is the slower of the ports that a and b have in it, as long as visit
  /// returns true.
  template <class Visit>
  void for_each_leg(NpuId a, NpuId b, Visit visit) const;

 private:
  struct GroupWiring {
    std::shared_ptr<const Wiring> wiring;
    std::uint32_t uniform_hops = 0;  ///< between any two positions; 0: pairs differ
  };
  struct Divisors {
    Divisor stride, size;
  };

  std::vector<Dimension> dimensions_;
  std::vector<Divisors> divisors_;  // [dimensions]
  std::vector<GroupWiring> wirings_;
  Links links_;
  SharedPorts ports_;
  std::uint32_t num_npus_ = 1;
};

template <class Visit>
void Topology::for_each_leg(NpuId a, NpuId b, Visit visit) const {
  std::uint32_t rest_a = a.value();
  std::uint32_t rest_b = b.value();
  std::uint32_t at = a.value();  // where the message is
  for (std::uint32_t d = 0; rest_a != rest_b; ++d) {
    const std::uint32_t n = dimensions_[d].size;
    const std::uint32_t from = rest_a % n;
    const std::uint32_t to = rest_b % n;
    rest_a /= n;
    rest_b /= n;
    if (from == to) continue;
    const std::uint32_t regular = hops(d, from, to);
    if (links_.empty()) {
      if (!visit(d, regular, Port{})) return;
    } else {
      const std::uint32_t next = at + to * stride(d) - from * stride(d);
      if (!visit(d, links_.hops(d, NpuId(at), NpuId(next), regular),
                 slower(links_.port(d, links_.kind_of_port(d, a)), links_.port(d, links_.kind_of_port(d, b)))))
        return;
      at = next;
    }
  }
}

}  // namespace orrery::topology
