#include "cube_pool.hpp"

#include <algorithm>

#include "orrery/base/error.hpp"
#include "torus_pool.hpp"

namespace orrery::cluster {
namespace {

std::uint32_t volume(const std::array<std::uint32_t, 3>& shape) { return shape[0] * shape[1] * shape[2]; }

/// Calls visit({x, y, z}) for the places of a block, x fastest, until it returns false. Returns whether it never did.
template <class Visit>
bool visit_block(const std::array<std::uint32_t, 3>& shape, Visit visit) {
  for (std::uint32_t z = 0; z < shape[2]; ++z)
    for (std::uint32_t y = 0; y < shape[1]; ++y)
      for (std::uint32_t x = 0; x < shape[0]; ++x)
        if (!visit(std::array{x, y, z})) return false;
  return true;
}

}  // namespace

CubePool::CubePool(const Places& places)
    : Pool(volume(places.torus), volume(places.torus)),
      size_(places.torus),
      cube_(places.cubes),
      grid_{size_[0] / cube_[0], size_[1] / cube_[1], size_[2] / cube_[2]},
      rotate_(places.rotate),
      wrap_(places.wrap),
      has_circuits_(places.circuits),
      free_(num_npus_, true),
      free_of_cube_(volume(grid_), volume(cube_)) {}

bool CubePool::fits_into_cube(const Shape& shape) const {
  return shape[0] <= cube_[0] && shape[1] <= cube_[1] && shape[2] <= cube_[2];
}

CubePool::Shape CubePool::cubes_of(const Shape& shape) const {
  Shape cubes{};
  for (std::size_t i = 0; i < 3; ++i) cubes[i] = (shape[i] + cube_[i] - 1) / cube_[i];
  return cubes;
}

std::uint32_t CubePool::npu_at(std::uint32_t cube, const Shape& at) const {
  const std::uint32_t x = cube % grid_[0] * cube_[0] + at[0], y = cube / grid_[0] % grid_[1] * cube_[1] + at[1],
                      z = cube / grid_[0] / grid_[1] * cube_[2] + at[2];
  return x + y * size_[0] + z * size_[0] * size_[1];
}

std::uint32_t CubePool::cube_of(std::uint32_t npu) const {
  const std::uint32_t x = npu % size_[0] / cube_[0], y = npu / size_[0] % size_[1] / cube_[1],
                      z = npu / size_[0] / size_[1] / cube_[2];
  return x + y * grid_[0] + z * grid_[0] * grid_[1];
}

std::optional<CubePool::Found> CubePool::block_of_a_cube(const Shape& shape) const {
  const Shape origins = {cube_[0] - shape[0] + 1, cube_[1] - shape[1] + 1, cube_[2] - shape[2] + 1};
  for (std::uint32_t cube = 0; cube < free_of_cube_.size(); ++cube) {
    if (free_of_cube_[cube] < volume(shape)) continue;
    Found found{shape, {cube}, {}};
    visit_block(origins, [&](const Shape& origin) {
      const bool is_free = visit_block(shape, [&](const Shape& at) {
        return bool{free_[npu_at(cube, {origin[0] + at[0], origin[1] + at[1], origin[2] + at[2]})]};
      });
      if (is_free) found.origin = origin;
      return !is_free;
    });
    if (found.origin) return found;
  }
  return {};
}

std::optional<CubePool::Found> CubePool::cubes_side_by_side(const Shape& shape, const Shape& cubes) const {
  Shape origins{};
  for (std::size_t i = 0; i < 3; ++i) {
    if (cubes[i] > grid_[i]) return {};
    origins[i] = wrap_ && cubes[i] < grid_[i] ? grid_[i] : grid_[i] - cubes[i] + 1;
  }
  Found found{shape, {}, {}};
  const bool has_none = visit_block(origins, [&](const Shape& origin) {
    found.cubes.clear();
    return !visit_block(cubes, [&](const Shape& at) {
      const std::uint32_t cube = (origin[0] + at[0]) % grid_[0] + (origin[1] + at[1]) % grid_[1] * grid_[0] +
                                 (origin[2] + at[2]) % grid_[2] * grid_[0] * grid_[1];
      found.cubes.push_back(cube);
      return is_whole(cube);
    });
  });
  return has_none ? std::nullopt : std::optional(std::move(found));
}

std::optional<CubePool::Found> CubePool::whole_cubes(const Shape& shape) const {
  const Shape cubes = cubes_of(shape);
  if (!has_circuits_) return cubes_side_by_side(shape, cubes);
  Found found{shape, {}, {}};
  for (std::uint32_t cube = 0; cube < free_of_cube_.size() && found.cubes.size() < volume(cubes); ++cube)
    if (is_whole(cube)) found.cubes.push_back(cube);
  return found.cubes.size() == volume(cubes) ? std::optional(std::move(found)) : std::nullopt;
}

std::optional<CubePool::Found> CubePool::search(const Job& job) const {
  for (const Shape& shape : orders_of(job.shape, rotate_))
    if (auto found = fits_into_cube(shape) ? block_of_a_cube(shape) : whole_cubes(shape)) return found;
  return {};
}

Place CubePool::find(const Job& job, std::uint64_t) const {
  const auto found = search(job);
  ensure(found.has_value(), "a job that fits has a place");
  Place place;
  if (found->origin) {
    const Shape& origin = *found->origin;
    visit_block(found->shape, [&](const Shape& at) {
      place.npus.push_back(npu_at(found->cubes.front(), {origin[0] + at[0], origin[1] + at[1], origin[2] + at[2]}));
      return true;
    });
  } else {
    const Shape cubes = cubes_of(found->shape);
    std::vector<bool> is_used(num_npus_, false);
    const auto take = [&](std::uint32_t npu) {
      if (!is_used[npu]) place.npus.push_back(npu);
      is_used[npu] = true;
      return true;
    };
    visit_block(found->shape, [&](const Shape& at) {
      const std::uint32_t cube =
          at[0] / cube_[0] + at[1] / cube_[1] * cubes[0] + at[2] / cube_[2] * cubes[0] * cubes[1];
      return take(npu_at(found->cubes[cube], {at[0] % cube_[0], at[1] % cube_[1], at[2] % cube_[2]}));
    });
    // What is left of the cubes stays idle.
    for (const std::uint32_t cube : found->cubes)
      visit_block(cube_, [&](const Shape& at) { return take(npu_at(cube, at)); });
  }
  place.count = static_cast<std::uint32_t>(place.npus.size());
  return place;
}

std::uint32_t CubePool::occupied(const Job& job) const {
  const auto orders = orders_of(job.shape, rotate_);
  if (std::ranges::any_of(orders, [&](const Shape& shape) { return fits_into_cube(shape); })) return job.npus;
  return volume(cubes_of(job.shape)) * volume(cube_);
}

std::vector<std::uint32_t> CubePool::leaves(const Place& place) const {
  std::vector<std::uint32_t> cubes;
  for (const std::uint32_t npu : place.npus) cubes.push_back(cube_of(npu));
  std::ranges::sort(cubes);
  cubes.erase(std::unique(cubes.begin(), cubes.end()), cubes.end());
  return cubes;
}

void CubePool::change(const Place& place, bool is_free) {
  for (const std::uint32_t npu : place.npus) {
    free_[npu] = is_free;
    std::uint32_t& count = free_of_cube_[cube_of(npu)];
    count = is_free ? count + 1 : count - 1;
  }
  num_free_ = is_free ? num_free_ + place.count : num_free_ - place.count;
}

}  // namespace orrery::cluster
