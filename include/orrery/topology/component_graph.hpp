#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace orrery::topology {

/// The components of machines and the links between them, one by one. This is what a description of InfraGraph says
/// when all its counts and edges are expanded (docs/inputs.md, *InfraGraph*).
struct ComponentGraph {
  enum class Kind : std::uint8_t { custom, cpu, xpu, nic, memory, port, network_switch };

  /// An instance of a device of the infrastructure: a server, or a switch of the fabric.
  struct Machine {
    std::string name;    ///< "server.3"
    std::string device;  ///< "dgx"
  };
  struct Component {
    std::string name;  ///< "server.3.xpu.0"
    Kind kind = Kind::custom;
    std::uint32_t machine = 0;          ///< index in `machines`
    std::optional<std::uint32_t> rank;  ///< the annotation `rank`: the number of the NPU that it is
  };
  /// The physics of links of one name. What the file leaves out is missing.
  struct LinkKind {
    std::string name;
    std::optional<double> bytes_per_ns;  ///< from the first end to the second, and back
    std::optional<double> latency_ns;
    // On the way back, if they differ there. No description of InfraGraph says so.
    std::optional<double> bytes_per_ns_back = {}, latency_ns_back = {};
    std::uint32_t shared_by = 1;  ///< NPUs that share the rate; `bytes_per_ns` is the part of one of them
  };
  /// Joins two components, both ways at a time. Two components may have several links.
  struct Link {
    std::uint32_t a = 0, b = 0;  ///< components
    std::uint32_t kind = 0;      ///< index in `kinds`
  };

  std::string file, name;
  std::vector<Machine> machines;
  std::vector<Component> components;  ///< machine by machine
  std::vector<LinkKind> kinds;
  std::vector<Link> links;
  std::vector<std::string> notes;  ///< notes on contents of the file that the reader does not know
};

}  // namespace orrery::topology
