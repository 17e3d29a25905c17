// Runs the tests on every rank. Rank 0 prints the results. The exit code is the largest of all ranks.
#include <gtest/gtest.h>

#include <cstdint>
#include <span>

#include "mpi_world.hpp"

namespace orrery::test {
parallel::Communicator* the_world = nullptr;
parallel::Communicator& world() { return *the_world; }
}  // namespace orrery::test

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  orrery::parallel::Environment environment;
  orrery::test::the_world = &environment.world();
  auto& listeners = testing::UnitTest::GetInstance()->listeners();
  if (!environment.world().is_root()) delete listeners.Release(listeners.default_result_printer());
  std::int64_t code = RUN_ALL_TESTS();
  environment.world().maximum(std::span(&code, 1));
  return static_cast<int>(code);
}
