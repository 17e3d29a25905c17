#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "orrery/cluster/placement.hpp"

namespace orrery::cluster {

/// A torus of cubes. A job that fits into a cube takes a block of one; others take whole cubes: any free ones where
/// circuits join them, a block of the torus of cubes otherwise (P5).
class CubePool final : public Pool {
 public:
  explicit CubePool(const Places& places);

  bool fits(const Job& job) const override { return job.npus <= num_free_ && search(job).has_value(); }
  Place find(const Job& job, std::uint64_t number) const override;
  void take(const Place& place) override { change(place, false); }
  void release(const Place& place) override { change(place, true); }
  std::unique_ptr<Pool> copy() const override { return std::make_unique<CubePool>(*this); }
  std::uint32_t occupied(const Job& job) const override;
  /// Cubes are leaves.
  std::vector<std::uint32_t> leaves(const Place& place) const override;

 private:
  using Shape = std::array<std::uint32_t, 3>;
  /// Free NPUs for a job: cubes for its shape as it is turned, in the order of their places in the job, or one cube and
  /// the origin of the block in it.
  struct Found {
    Shape shape{};
    std::vector<std::uint32_t> cubes;
    std::optional<Shape> origin;
  };

  std::optional<Found> search(const Job& job) const;
  std::optional<Found> block_of_a_cube(const Shape& shape) const;
  std::optional<Found> whole_cubes(const Shape& shape) const;
  std::optional<Found> cubes_side_by_side(const Shape& shape, const Shape& cubes) const;
  bool fits_into_cube(const Shape& shape) const;
  Shape cubes_of(const Shape& shape) const;
  std::uint32_t npu_at(std::uint32_t cube, const Shape& at) const;
  std::uint32_t cube_of(std::uint32_t npu) const;
  bool is_whole(std::uint32_t cube) const { return free_of_cube_[cube] == cube_[0] * cube_[1] * cube_[2]; }
  void change(const Place& place, bool is_free);

  Shape size_, cube_, grid_;  // NPUs of the torus, NPUs of a cube, cubes of the torus
  bool rotate_, wrap_, has_circuits_;
  std::vector<bool> free_;                   // [npus]
  std::vector<std::uint32_t> free_of_cube_;  // [cubes] free NPUs
};

}  // namespace orrery::cluster
