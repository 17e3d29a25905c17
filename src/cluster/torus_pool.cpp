#include "torus_pool.hpp"

#include <algorithm>
#include <bit>

#include "orrery/base/error.hpp"

namespace orrery::cluster {
namespace {

/// Returns the first `count` bits.
std::uint64_t ones(std::uint32_t count) { return count >= 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << count) - 1; }

}  // namespace

TorusPool::TorusPool(const Places& places)
    : Pool(places.torus[0] * places.torus[1] * places.torus[2], places.torus[0] * places.torus[1] * places.torus[2]),
      size_(places.torus),
      rotate_(places.rotate),
      wrap_(places.wrap),
      free_(std::size_t{size_[1]} * size_[2], ones(size_[0])) {}

std::vector<std::array<std::uint32_t, 3>> orders_of(const std::array<std::uint32_t, 3>& s, bool rotate) {
  using Shape = std::array<std::uint32_t, 3>;
  if (!rotate) return {s};
  constexpr std::array<std::array<std::size_t, 3>, 6> permutations = {
      {{0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}}};
  std::vector<Shape> found;
  for (const auto& p : permutations)
    if (const Shape turned = {s[p[0]], s[p[1]], s[p[2]]}; std::ranges::find(found, turned) == found.end())
      found.push_back(turned);
  return found;
}

std::optional<TorusPool::Shape> TorusPool::origin(const Shape& shape) const {
  const auto [nx, ny, nz] = size_;
  for (std::size_t i = 0; i < 3; ++i)
    if (shape[i] > size_[i]) return {};
  const auto limit = [&](std::size_t i) { return wrap_ && shape[i] < size_[i] ? size_[i] : size_[i] - shape[i] + 1; };
  std::vector<std::uint64_t> rows = free_;
  for (std::uint64_t& row : rows) {  // bits from which a run of the shape's length in x begins
    const std::uint64_t free = row;
    for (std::uint32_t i = 1; i < shape[0] && row != 0; ++i) {
      std::uint64_t shifted = free >> i;
      if (wrap_) shifted |= free << (nx - i) & ones(nx);
      row &= shifted;
    }
    row &= ones(limit(0));
  }
  std::vector<std::uint64_t> planes(rows.size(), 0);  // the same for runs in y
  for (std::uint32_t z = 0; z < nz; ++z)
    for (std::uint32_t y = 0; y < limit(1); ++y) {
      std::uint64_t all = rows[z * ny + y];
      for (std::uint32_t i = 1; i < shape[1] && all != 0; ++i) all &= rows[z * ny + (y + i) % ny];
      planes[z * ny + y] = all;
    }
  for (std::uint32_t z = 0; z < limit(2); ++z)
    for (std::uint32_t y = 0; y < limit(1); ++y) {
      std::uint64_t all = planes[z * ny + y];
      for (std::uint32_t i = 1; i < shape[2] && all != 0; ++i) all &= planes[(z + i) % nz * ny + y];
      if (all != 0) return Shape{static_cast<std::uint32_t>(std::countr_zero(all)), y, z};
    }
  return {};
}

bool TorusPool::fits(const Job& job) const {
  if (job.npus > num_free_) return false;
  return std::ranges::any_of(orders_of(job.shape, rotate_),
                             [&](const Shape& shape) { return origin(shape).has_value(); });
}

Place TorusPool::find(const Job& job, std::uint64_t) const {
  for (const Shape& shape : orders_of(job.shape, rotate_)) {
    const auto at = origin(shape);
    if (!at) continue;
    Place place{job.npus, {}};
    for (std::uint32_t c = 0; c < shape[2]; ++c)
      for (std::uint32_t b = 0; b < shape[1]; ++b)
        for (std::uint32_t a = 0; a < shape[0]; ++a)
          place.npus.push_back(((*at)[0] + a) % size_[0] + ((*at)[1] + b) % size_[1] * size_[0] +
                               ((*at)[2] + c) % size_[2] * size_[0] * size_[1]);
    return place;
  }
  ensure(false, "a job that fits has a place");
  return {};
}

void TorusPool::change(const Place& place, bool is_free) {
  for (const std::uint32_t npu : place.npus) free_[npu / size_[0]] ^= std::uint64_t{1} << (npu % size_[0]);
  const auto count = static_cast<std::uint32_t>(place.npus.size());
  num_free_ = is_free ? num_free_ + count : num_free_ - count;
}

}  // namespace orrery::cluster
