#include "orrery/campaign/replication.hpp"

#include "machine.hpp"

namespace orrery::campaign {

Row replicate(const Setup& setup, std::uint64_t replication, const Watch& watch) {
  return Machine(setup, replication, watch).run();
}

}  // namespace orrery::campaign
