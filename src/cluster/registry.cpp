#include <algorithm>
#include <memory>

#include "count_pool.hpp"
#include "cube_pool.hpp"
#include "flat_pool.hpp"
#include "orrery/base/error.hpp"
#include "orrery/cluster/placement.hpp"
#include "torus_pool.hpp"

namespace orrery::cluster {
namespace {

std::unique_ptr<Pool> make_flat(const Places& places, std::uint64_t seed) {
  return std::make_unique<FlatPool>(places, seed);
}

constexpr Policy all_policies[] = {
    {"none", "only the number of free NPUs counts", Placing::none,
     [](const Places& places, std::uint64_t) -> std::unique_ptr<Pool> {
       return std::make_unique<CountPool>(places.npus, places.npus);
     }},
    {"first", "the free NPUs with the lowest numbers", Placing::first, make_flat},
    {"contiguous", "the first free NPUs that follow one another", Placing::contiguous, make_flat},
    {"packed", "the fullest leaf that has room, else as few leaves as possible", Placing::packed, make_flat},
    {"random", "free NPUs that are drawn", Placing::random, make_flat},
    {"torus", "a block of a torus in the shape of the job", Placing::torus,
     [](const Places& places, std::uint64_t) -> std::unique_ptr<Pool> {
       if (places.cubes[0] > 0) return std::make_unique<CubePool>(places);
       return std::make_unique<TorusPool>(places);
     }},
};

}  // namespace

std::span<const Policy> policies() { return all_policies; }

std::unique_ptr<Pool> make_pool(const Places& places, std::uint64_t seed) {
  const auto* const found = std::ranges::find(all_policies, places.policy, &Policy::placing);
  ensure(found != std::end(all_policies), "a placement policy is in the registry");
  return found->make(places, seed);
}

}  // namespace orrery::cluster
