#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "orrery/cluster/placement.hpp"

namespace orrery::cluster {

/// Returns the orders of a shape: it alone, or with `rotate` all that differ, those of x, y, z first.
std::vector<std::array<std::uint32_t, 3>> orders_of(const std::array<std::uint32_t, 3>& shape, bool rotate);

/// Blocks of a three-dimensional torus of at most 64 NPUs in each dimension; x changes fastest (P5).
class TorusPool final : public Pool {
 public:
  explicit TorusPool(const Places& places);

  bool fits(const Job& job) const override;
  Place find(const Job& job, std::uint64_t number) const override;
  void take(const Place& place) override { change(place, false); }
  void release(const Place& place) override { change(place, true); }
  std::unique_ptr<Pool> copy() const override { return std::make_unique<TorusPool>(*this); }

 private:
  using Shape = std::array<std::uint32_t, 3>;

  /// Returns the origin of the first free block of a shape.
  std::optional<Shape> origin(const Shape& shape) const;
  void change(const Place& place, bool is_free);

  Shape size_;
  bool rotate_, wrap_;
  std::vector<std::uint64_t> free_;  // [z][y] bits of x
};

}  // namespace orrery::cluster
