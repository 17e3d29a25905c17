#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "network_view.hpp"

namespace orrery::network {

/// A part of a packet network whose packets meet no others.
struct NetworkPart {
  std::vector<std::uint32_t> flows;     ///< slots
  std::vector<std::uint32_t> ports;     ///< indices; all ports of its switches are its own
  std::vector<std::uint32_t> switches;  ///< nodes
  bool is_here = true;                  ///< whether all of it is on this rank
};

/// Divides the network, as far as flows of this rank use it, into parts whose packets meet no others. Flows are in the
/// same part if the paths of their packets or acknowledgements share a link or a switch. Switches belong to one part as
/// a whole, because their ports share a buffer; each port of a host stands for itself.
class NetworkParts {
 public:
  static constexpr std::uint32_t none = ~0U;

  explicit NetworkParts(const NetworkView& view);

  const NetworkPart& operator[](std::uint32_t number) const { return parts_[number]; }
  std::uint32_t of_port(std::size_t index) const { return of_port_[index]; }
  std::uint32_t of_flow(std::uint32_t slot) const { return slot < of_flow_.size() ? of_flow_[slot] : none; }
  /// Takes a flow that begins, without a part. Returns the parts that it meets, each once. O(links of its path), and
  /// O(1) while there are no parts.
  std::vector<std::uint32_t> add(const Flow& flow);
  /// Leaves the flows of a part without one. O(flows + ports of the part).
  void dissolve(std::uint32_t number);
  /// Puts all flows without a part that are not over into new parts. No other part meets them. Returns the new ones.
  /// O(slots of flows + links of their paths + ports of the parts).
  std::vector<std::uint32_t> divide();

 private:
  /// The path of the packets of a flow, and of their acknowledgements.
  struct Path {
    std::vector<std::uint32_t> elements;  ///< ports of hosts, and the first ports of switches; empty: not known yet
    bool is_here = true;                  ///< whether all of it is on this rank
  };

  void follow(const PacketRouter::FlowKey& key, Path& path) const;
  std::uint32_t element_of(const Port& port) const;
  Path& path_of(std::uint32_t slot);
  std::uint32_t make_part(std::span<const std::pair<std::size_t, std::uint32_t>> flows);

  NetworkView view_;
  std::vector<NetworkPart> parts_;
  std::vector<std::uint32_t> free_;               // numbers of parts
  std::vector<std::uint32_t> of_port_, of_flow_;  // [ports], [slots of flows]
  std::vector<Path> paths_;                       // [slots of flows]
};

}  // namespace orrery::network
