#include <array>

#include "orrery/partition/strategy.hpp"

namespace orrery::partition {

// Each is defined in the file of its name.
Strategy block();
Strategy round_robin();
Strategy dimension();
Strategy metis();
Strategy rank_map();

std::span<const Strategy> strategies() {
  static const std::array all = {block(), round_robin(), dimension(), metis(), rank_map()};
  return all;
}

}  // namespace orrery::partition
