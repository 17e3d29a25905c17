#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "orrery/base/error.hpp"
#include "orrery/base/quantity.hpp"

namespace orrery::topology {

enum class Shape : std::uint8_t { ring, mesh, fully_connected, switched, fat_tree, dragonfly };
constexpr Shape shapes[] = {Shape::ring,     Shape::mesh,     Shape::fully_connected,
                            Shape::switched, Shape::fat_tree, Shape::dragonfly};

/// "Ring", "Mesh", "FullyConnected", "Switch", "FatTree", "Dragonfly".
std::string_view name(Shape shape);
/// Its links are shared by pairs of NPUs that nothing else joins: only a network that has every link can have it.
constexpr bool is_of_links_only(Shape shape) { return shape == Shape::fat_tree || shape == Shape::dragonfly; }

struct Dimension {
  Shape shape = Shape::ring;
  std::uint32_t size = 1;
  Bandwidth bandwidth;    ///< of one link
  double latency_ns = 0;  ///< of one hop
  /// Switch: reductions and multicasts that the switch of a line carries out at a time; 0: it only forwards.
  std::uint32_t in_switch_operations = 0;
  std::uint32_t links = 1;  ///< side by side where the shape has one: they carry equal parts of each message
  /// Switch: its links together have so many times the bandwidth that passes it. FatTree: NPUs of an edge switch for
  /// each of its links up.
  double oversubscription = 1;
  std::uint32_t ports = 0;  ///< FatTree: of a switch
  // Dragonfly:
  std::uint32_t routers = 0;  ///< of a group
  std::uint32_t npus_per_router = 0;
  std::uint32_t global_links = 0;  ///< of a router, to other groups

  /// Of the links side by side.
  Bandwidth bandwidth_of_links() const { return Bandwidth::from_bytes_per_ns(bandwidth.bytes_per_ns() * links); }

  friend bool operator==(const Dimension&, const Dimension&) = default;
};

/// Throws Error (bad_input) at `place` that names the dimension by its number and `name`: a size, bandwidth, latency or
/// structure that cannot be.
void validate(const Dimension& dimension, std::size_t number, std::string_view name, const Place& place = {});

/// Hops between two places of a line whose coordinates differ by `difference`, whichever is higher. Ring: the shorter
/// way round; FatTree and Dragonfly: of the places that are farthest apart.
std::uint32_t hops(const Dimension& dimension, std::uint32_t difference);
/// Between any two places, at the least.
std::uint32_t fewest_hops(Shape shape);

/// Ways that messages of one line may take at a time, links side by side counted one by one: Ring 2n links (2 for n =
/// 2), Mesh 2(n-1), FullyConnected n(n-1), Switch, FatTree and Dragonfly n (a way up with a way down); 0 for a line
/// of one.
std::uint64_t directed_links(const Dimension& dimension);

}  // namespace orrery::topology
