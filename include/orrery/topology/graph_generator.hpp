#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "orrery/topology/network_graph.hpp"

namespace orrery::topology {

/// A server: NPUs, its switches and other devices, and the links between them. NPUs are its first nodes.
struct ServerPlan {
  struct Link {
    std::uint32_t a = 0, b = 0;  ///< nodes of the server
    std::uint32_t kind = 0;      ///< index in `kinds`
  };
  /// Where a link to the network between servers begins: the NIC of an NPU, or a NIC that is a node.
  struct Port {
    std::uint32_t node = 0;
    std::optional<double> bytes_per_ns;  ///< rate of the NIC; none: the rate of the links of hosts
  };

  std::uint32_t num_npus = 0;
  std::vector<std::string> devices;  ///< names of the nodes that follow the NPUs
  std::vector<ComponentGraph::LinkKind> kinds;
  std::vector<Link> links;
  std::vector<Port> ports;    ///< ports in the order of the NICs
  bool npus_forward = false;  ///< its NPUs pass on packets of others
};

/// How the NPUs of a server are joined.
enum class ServerInside : std::uint8_t { none, one_switch, all_pairs, ring };
/// Returns a server whose NPUs have a NIC each. Its links are of one kind, `inside`.
ServerPlan make_server(std::uint32_t num_npus, ServerInside inside, const LinkPhysics& physics);

/// A whole number, or a list of them, that a generator takes.
struct GraphParameter {
  std::string_view name;          ///< as configurations spell it
  std::string_view help;          ///< one line
  std::string_view default_text;  ///< for tables; empty: it must be given, or follows from others
  std::optional<std::uint32_t> otherwise = {};
  std::uint32_t least = 1;
  bool is_list = false;
};

/// The input of a generator: the given parameters, and servers. Generators refuse contradictions.
class GraphParameters {
 public:
  using Refusal = std::function<void(std::string_view name, const std::string& found, const std::string& expected)>;

  /// Takes the parameters that a generator knows. `refusal` throws the error about a parameter.
  GraphParameters(std::span<const GraphParameter> known, Refusal refusal)
      : known_(known), refusal_(std::move(refusal)) {}

  void set(std::string_view name, std::vector<std::uint32_t> values) { values_[std::string(name)] = std::move(values); }
  bool has(std::string_view name) const { return values_.contains(name); }
  /// Returns a number: the given one, `otherwise`, or the default of the parameter. One of them must be there.
  std::uint32_t count(std::string_view name, std::optional<std::uint32_t> otherwise = {}) const;
  const std::vector<std::uint32_t>& list(std::string_view name) const;
  [[noreturn]] void refuse(std::string_view name, const std::string& found, const std::string& expected) const;

  std::vector<ServerPlan> servers;   ///< empty: as many as the network has places for
  std::optional<ServerPlan> server;  ///< each of these; none: a lone NPU

 private:
  std::span<const GraphParameter> known_;
  Refusal refusal_;
  std::map<std::string, std::vector<std::uint32_t>, std::less<>> values_;
};

/// A network that was generated. Links lack a rate or a delay that only the user knows.
struct GeneratedGraph {
  NetworkGraph graph;
  bool hosts_forward = false;
  std::vector<GraphDimension> dimensions;  ///< those that fit; empty: find_dimensions may know some
};

/// Makes networks of one kind from parameters.
struct GraphGenerator {
  std::string_view name;  ///< as configurations spell it
  std::string_view help;  ///< one line
  std::span<const GraphParameter> parameters;
  /// Throws as GraphParameters::refuse. Cost O(nodes + links).
  GeneratedGraph (*make)(const GraphParameters& parameters);

  /// Returns all generators, each of which is in a file of src/topology/generators/.
  static std::span<const GraphGenerator* const> registry();
};

/// A network of more nodes or links is refused.
inline constexpr std::uint64_t most_generated_nodes = std::uint64_t{1} << 24U;
inline constexpr std::uint64_t most_generated_links = std::uint64_t{1} << 26U;

}  // namespace orrery::topology
