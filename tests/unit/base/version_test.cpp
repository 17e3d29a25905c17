#include "orrery/base/version.hpp"

#include <gtest/gtest.h>

#include <string>

namespace orrery {
namespace {

// The linker gives each program a build ID, a SHA-1 of 20 bytes. The text by which programs are compared has it.
TEST(Version, AProgramHasABuildId) {
  const std::string id = build_id();
  EXPECT_EQ(id.size(), 40U);
  EXPECT_EQ(id.find_first_not_of("0123456789abcdef"), std::string::npos) << id;
  EXPECT_NE(program().find(id), std::string::npos) << program();
}

}  // namespace
}  // namespace orrery
