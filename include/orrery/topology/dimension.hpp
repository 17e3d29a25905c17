#pragma once

#include <cstdint>
#include <string_view>

#include "orrery/base/quantity.hpp"

namespace orrery::topology {

enum class Shape : std::uint8_t { ring, mesh, fully_connected, switched };
constexpr Shape shapes[] = {Shape::ring, Shape::mesh, Shape::fully_connected, Shape::switched};

/// "Ring", "Mesh", "FullyConnected", "Switch".
std::string_view name(Shape shape);

struct Dimension {
  Shape shape = Shape::ring;
  std::uint32_t size = 1;
  Bandwidth bandwidth;    ///< of one link
  double latency_ns = 0;  ///< of one hop
  /// Switch: reductions and multicasts that the switch of a line carries out at a time; 0: it only forwards.
  std::uint32_t in_switch_operations = 0;
  std::uint32_t links = 1;      ///< side by side where the shape has one: they carry equal parts of each message
  double oversubscription = 1;  ///< Switch: its links together have so many times the bandwidth that passes it

  /// Of the links side by side.
  Bandwidth bandwidth_of_links() const { return Bandwidth::from_bytes_per_ns(bandwidth.bytes_per_ns() * links); }

  friend bool operator==(const Dimension&, const Dimension&) = default;
};

/// Ways that messages of one line may take at a time, links side by side counted one by one: Ring 2n links (2 for n =
/// 2), Mesh 2(n-1), FullyConnected n(n-1), Switch n (an up-link with the down-link that it leads to); 0 for a line of
/// one.
std::uint64_t directed_links(const Dimension& dimension);

}  // namespace orrery::topology
