#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "orrery/base/error.hpp"
#include "orrery/topology/component_graph.hpp"

namespace orrery::topology {

/// NPUs and switches, joined by links that carry data both ways at a time. Nodes 0 .. num_npus - 1 are the NPUs.
struct NetworkGraph {
  struct Node {
    std::string name;
    std::uint32_t machine = 0;  ///< number of its machine: nodes of one machine have the same number
  };
  struct Link {
    std::uint32_t a = 0, b = 0;  ///< nodes
    std::uint32_t kind = 0;      ///< index in `kinds`
  };

  std::uint32_t num_npus = 0;
  std::vector<Node> nodes;
  std::vector<Link> links;  ///< two nodes may have several
  std::vector<ComponentGraph::LinkKind> kinds;

  std::uint32_t num_switches() const { return static_cast<std::uint32_t>(nodes.size()) - num_npus; }
};

/// Rate and delay of links where the description has none.
struct LinkPhysics {
  std::optional<double> bytes_per_ns;
  std::optional<double> latency_ns;
};
struct LinkDefaults {
  LinkPhysics all;
  std::map<std::string, LinkPhysics, std::less<>> of_link;  ///< physics by name of the link; overrides the file
};

/// Returns the network of machines (docs/inputs.md, *InfraGraph*). A machine with XPUs is a host: its XPUs are NPUs,
/// and a switch in it counts if all of its XPUs are joined to it. An edge of a NIC is one of the XPU that it is for. If
/// a host has fewer NICs than XPUs, those for which a NIC is the nearest share it: each has a link with its part of the
/// rate. A machine without XPUs is one switch. Throws Error (bad_input): no XPUs, ranks that are not 0, 1, 2, ..., a
/// component that is joined to another machine and is none of NIC, XPU and switch. Cost O(components + links), times
/// the XPUs of a host where NICs are shared.
NetworkGraph network_of(const ComponentGraph& components);

/// Fills in missing values of links. Throws Error (bad_input) that lists the names of links which still have no
/// bandwidth or no latency, and for a name of the defaults that no link has. `file` names the description.
void complete_links(NetworkGraph& graph, const LinkDefaults& defaults, const std::string& file);
/// Does the same. `expected` and `hint` end the message about links that lack something.
void complete_links(NetworkGraph& graph, const LinkDefaults& defaults, const Place& place, std::string_view expected,
                    std::string_view hint);

/// A dimension that was found in a graph.
struct GraphDimension {
  std::string_view shape;  ///< name of a ShapeType: Ring, FullyConnected or Switch
  std::uint32_t size = 0;

  friend bool operator==(const GraphDimension&, const GraphDimension&) = default;
};
/// Returns the dimensions of a graph, the first one fastest in the numbers of NPUs: in a host a ring, all pairs or a
/// switch, or a product of two or three of these; above it a switch for the hosts of a rack, and one for the racks.
/// Returns none if the graph has no such form. Cost O(links * products of sizes).
std::vector<GraphDimension> find_dimensions(const NetworkGraph& graph);

}  // namespace orrery::topology
