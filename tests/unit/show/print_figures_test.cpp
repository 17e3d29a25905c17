#include "print_figures.hpp"

#include <gtest/gtest.h>

#include <cstdio>
#include <string>

namespace orrery::show {
namespace {

std::string printed(const nlohmann::ordered_json& figures, bool as_json) {
  testing::internal::CaptureStdout();
  print_figures(figures, as_json);
  std::fflush(stdout);
  return testing::internal::GetCapturedStdout();
}

const nlohmann::ordered_json figures = {
    {"npus", 8}, {"name", "a b"}, {"dimensions", {{{"size", 2}}, {{"size", 4}, {"ratio", 0.5}}}}};

// Nested figures are printed as text. Each has one line, whose key is the path with dots, and texts have no quotes.
TEST(PrintFigures, WritesALinePerFigure) {
  EXPECT_EQ(printed(figures, false),
            "npus: 8\nname: a b\ndimensions.0.size: 2\ndimensions.1.size: 4\ndimensions.1.ratio: 0.5\n");
}

// The same figures are printed as JSON. What is read back is equal and in the same order.
TEST(PrintFigures, WritesJson) { EXPECT_EQ(nlohmann::ordered_json::parse(printed(figures, true)), figures); }

}  // namespace
}  // namespace orrery::show
