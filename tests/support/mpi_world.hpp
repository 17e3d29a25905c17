#pragma once

#include "orrery/parallel/environment.hpp"

namespace orrery::test {

/// All ranks of the test.
parallel::Communicator& world();
/// The number of this rank.
inline int me() { return world().rank().value(); }

}  // namespace orrery::test
