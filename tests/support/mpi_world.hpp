#pragma once

#include "orrery/parallel/environment.hpp"

namespace orrery::test {

/// Returns the communicator of all ranks of the test.
parallel::Communicator& world();
/// Returns the number of this rank.
inline int me() { return world().rank().value(); }

}  // namespace orrery::test
