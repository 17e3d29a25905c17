#include "room.hpp"

#include <algorithm>

namespace orrery::cluster {

std::uint32_t largest_job(const Pool& pool, const Places& places) {
  const bool is_torus = places.policy == Placing::torus;
  if (!is_torus && places.policy != Placing::contiguous && places.npus_per_host == 1) return pool.num_free();
  const auto job_of = [&](std::uint32_t size) {
    Job job;
    job.npus = is_torus ? size * size * size : size;
    if (is_torus) job.shape = {size, size, size};
    return job;
  };
  std::uint32_t low = 0, high = is_torus ? *std::ranges::min_element(places.torus) : pool.num_free();
  while (low < high) {
    const std::uint32_t middle = low + (high - low + 1) / 2;
    if (pool.fits(job_of(middle)))
      low = middle;
    else
      high = middle - 1;
  }
  return low == 0 ? 0 : job_of(low).npus;
}

}  // namespace orrery::cluster
