#include "orrery/base/registry.hpp"

#include <gtest/gtest.h>

#include <string>

namespace orrery {
namespace {

struct Colour {
  std::string_view name;
  bool is_warm = false;

  static std::span<const Colour* const> registry() {
    static constexpr Colour red{"red", true}, yellow{"yellow", true}, blue{"blue"};
    static constexpr const Colour* colours[] = {&red, &yellow, &blue};
    return colours;
  }
};

// A registry of red, yellow and blue. A value names one of them; the default is the first.
TEST(Registry, ValuesNameEntries) {
  using Any = Registered<Colour>;
  EXPECT_EQ(Any().name(), "red");
  EXPECT_EQ(Any("blue"), *Any::find("blue"));
  EXPECT_NE(Any("blue"), Any("red"));
  EXPECT_TRUE(Any("yellow")->is_warm);
  EXPECT_FALSE(Any::find("green"));
  EXPECT_THROW(Any("green"), Error);
  EXPECT_EQ(Any::all().size(), 3U);
}

// Messages list names with commas and a last "or".
TEST(Registry, ListsNames) {
  EXPECT_EQ(names_where<Colour>([](const Colour&) { return true; }), "red, yellow or blue");
  EXPECT_EQ(names_where<Colour>([](const Colour& colour) { return colour.is_warm; }), "red or yellow");
  EXPECT_EQ(names_where<Colour>([](const Colour& colour) { return !colour.is_warm; }), "blue");
}

}  // namespace
}  // namespace orrery
