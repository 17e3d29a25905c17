#pragma once

#include "orrery/parallel/environment.hpp"

namespace orrery::test {

/// All ranks of the test.
parallel::Communicator& world();

}  // namespace orrery::test
