#pragma once

#include <cstdint>
#include <vector>

#include "orrery/network/flit_rules.hpp"

namespace orrery::network::flit {

/// The routers of a group of dimensions and how they are joined. A port of a router is an output and an input. Meshes
/// and tori have the ports +x, -x, +y, -y and that of the NPU; a crossbar has one for each NPU.
struct Layout {
  FlitShape shape = FlitShape::crossbar;
  std::uint32_t width = 1;   ///< NPUs in a row, or all of a crossbar
  std::uint32_t height = 1;  ///< rows; 1 in a crossbar

  static constexpr std::uint32_t npu_port = 4, num_ports = 5;  ///< ports of a mesh or torus

  bool is_crossbar() const { return shape == FlitShape::crossbar; }
  std::uint32_t num_npus() const { return width * height; }
  std::uint32_t num_routers() const { return is_crossbar() ? 1 : num_npus(); }
  std::uint32_t ports() const { return is_crossbar() ? width : num_ports; }
  /// Returns the port of a router to which an NPU is joined, among all ports of all routers.
  std::uint32_t port_of_npu(std::uint32_t npu) const { return is_crossbar() ? npu : npu * num_ports + npu_port; }
  /// Returns whether an NPU is joined to this port of a router.
  bool leads_to_npu(std::uint32_t port) const { return is_crossbar() || port == npu_port; }
  /// Returns the NPU joined to a port of a router.
  std::uint32_t npu_at(std::uint32_t router, std::uint32_t port) const { return is_crossbar() ? port : router; }
  /// Returns, by port of all routers, the port at the other end of its link. What leaves by a port comes in by that
  /// one, and credits go back the same way. Ports of NPUs, and those at the edge of a mesh, have no such port.
  std::vector<std::uint32_t> opposite_ports() const;
  /// Calls visit(port, from, to, leads_to_npu) for each link that leaves a router, with the NPUs at its ends. The link
  /// to an NPU has that NPU at both ends.
  template <class Visit>
  void for_each_link(Visit visit) const {
    const std::vector<std::uint32_t> opposite = opposite_ports();
    for (std::uint32_t router = 0; router < num_routers(); ++router) {
      for (std::uint32_t port = 0; port < ports(); ++port) {
        const std::uint32_t number = router * ports() + port, npu = npu_at(router, port);
        leads_to_npu(port) ? visit(number, npu, npu, true) : visit(number, router, opposite[number] / ports(), false);
      }
    }
  }
  /// Returns the links between routers on the way of a packet.
  std::uint32_t hops(std::uint32_t from, std::uint32_t to) const;
};

}  // namespace orrery::network::flit
