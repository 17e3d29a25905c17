#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>

#include "orrery/base/error.hpp"
#include "orrery/base/quantity.hpp"
#include "orrery/topology/shape.hpp"

namespace orrery::topology {

/// How the switches of a shape that has several ways choose among them.
enum class Routing : std::uint8_t {
  automatic,  ///< as the network and its rules allow
  minimal,    ///< the shortest way that the destination chooses
  adaptive,   ///< another one where messages wait for less time
};

/// One dimension of a topology. Its *groups* are the sets of NPUs that differ in the coordinate of this dimension only;
/// a coordinate is the *position* of an NPU in its group.
struct Dimension {
  Shape shape;
  std::uint32_t size = 1;
  Bandwidth bandwidth;    ///< bandwidth of one link
  double latency_ns = 0;  ///< latency of one hop
  /// Reductions and multicasts that the switch of a group carries out at a time; 0: it only forwards.
  std::uint32_t in_switch_operations = 0;
  std::uint32_t links = 1;  ///< side by side where the shape has one; they carry equal parts of each message
  /// Switch: its links together have so many times the bandwidth that passes it. FatTree: NPUs of an edge switch for
  /// each of its links up.
  double oversubscription = 1;
  std::string port = {};  ///< name of the port that the links of an NPU lead through (SharedPorts); empty: none
  Routing routing = Routing::automatic;  ///< choice of ways (ShapeType::has_alternatives)
  /// The values of ShapeType::parameters by name, all of them.
  std::map<std::string, std::uint32_t, std::less<>> parameters = {};

  /// Returns the bandwidth of the links side by side.
  Bandwidth bandwidth_of_links() const { return Bandwidth::from_bytes_per_ns(bandwidth.bytes_per_ns() * links); }
  /// Returns the value of a parameter of the shape; 0 if it is not set.
  std::uint32_t parameter(std::string_view name) const {
    const auto found = parameters.find(name);
    return found == parameters.end() ? 0 : found->second;
  }

  friend bool operator==(const Dimension&, const Dimension&) = default;
};

/// Checks a dimension. Throws Error (bad_input) at `place` that names the dimension by its number and `name` if its
/// size, bandwidth, latency or structure is not possible.
void validate(const Dimension& dimension, std::size_t number, std::string_view name, const Place& place = {});

/// Returns how many messages of one group can be on the links of NPUs at a time, links side by side counted one by one;
/// 0 for a group of one NPU. See Wiring::num_injection_links for the cost.
std::uint64_t directed_links(const Dimension& dimension);

}  // namespace orrery::topology
