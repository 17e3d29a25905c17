#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "orrery/base/ids.hpp"
#include "orrery/base/quantity.hpp"
#include "orrery/base/rules.hpp"

namespace orrery::topology {

enum class Shape : std::uint8_t { ring, fully_connected, switched };

/// "Ring", "FullyConnected", "Switch".
std::string_view name(Shape shape);

struct Dimension {
  Shape shape = Shape::ring;
  std::uint32_t size = 1;
  Bandwidth bandwidth;    ///< of one link
  double latency_ns = 0;  ///< of one hop

  friend bool operator==(const Dimension&, const Dimension&) = default;
};

/// Ways that messages of one line may take at a time: Ring 2n links (2 for n = 2), FullyConnected n(n-1) links, Switch
/// n (an up-link with the down-link that it leads to); 0 for a line of one.
std::uint64_t directed_links(const Dimension& dimension);

/// A stack of dimensions, dimension 0 innermost. An NPU's id is a mixed-radix number of its coordinates, dimension 0
/// fastest (docs/model.md, 3).
class Topology {
 public:
  /// Throws Error (bad_input) that names the dimension: none at all, more than 64, a size of 0, a bandwidth that is not
  /// positive, a negative latency, more than 2^32 - 1 NPUs.
  Topology(std::vector<Dimension> dimensions, Rules rules);

  std::uint32_t num_npus() const { return num_npus_; }
  std::uint32_t num_dimensions() const { return static_cast<std::uint32_t>(dimensions_.size()); }
  const Dimension& dimension(std::uint32_t d) const { return dimensions_[d]; }
  const Rules& rules() const { return rules_; }

  std::uint32_t coordinate(NpuId npu, std::uint32_t d) const;  ///< of `npu` in dimension d, 0 .. size - 1
  /// Ids of neighbours in dimension d differ by this.
  std::uint32_t stride(std::uint32_t d) const { return strides_[d]; }
  /// Hops of `distance` positions inside a line of dimension d; 0 for distance 0. Ring: the shorter way round.
  std::uint32_t hops(std::uint32_t d, std::uint32_t distance) const;

  /// A message of `size` bytes over `hops` links of dimension d: hops * latency + size / bandwidth.
  Time link_delay(std::uint32_t d, std::uint32_t hops, Bytes size) const;
  /// Point to point under the rules (docs/model.md, 1 and 4): at least one tick for a != b. With
  /// Rules::charge_every_dimension the message goes through the differing dimensions one after the other, stored and
  /// forwarded whole between them: the sum of their link delays. Else the link delay of the lowest differing dimension.
  /// O(dimensions).
  Time delay(NpuId a, NpuId b, Bytes size) const;
  /// The least delay between two different NPUs, whatever the size: at least one tick.
  Time minimum_delay() const { return minimum_delay_; }

 private:
  std::vector<Dimension> dimensions_;
  std::vector<std::uint32_t> strides_;
  Rules rules_;
  std::uint32_t num_npus_ = 1;
  Time minimum_delay_;
};

}  // namespace orrery::topology
