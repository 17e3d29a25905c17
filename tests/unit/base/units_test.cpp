#include "orrery/base/units.hpp"

#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>

namespace orrery {
namespace {

// Units of each kind. What they are in SI units is exact to the bit, although the program computes with others.
TEST(Units, AreExactInSi) {
  const std::map<std::string_view, double> expected{
      {"TB", 1e12},    {"GiB", 0x1p30}, {"GiB/s", 0x1p30}, {"KiB/s", 0x1p10}, {"TiB/s", 0x1p40}, {"B/s", 1},
      {"Mb/s", 125e3}, {"b/s", 0.125},  {"ps", 1e-12},     {"us", 1e-6},      {"s", 1},          {"EFLOPS", 1e18}};
  std::size_t found = 0;
  for (const UnitFamily& family : unit_families)
    for (const Unit& unit : family.units)
      if (const auto one = expected.find(unit.name); one != expected.end()) {
        EXPECT_EQ(family.to_si(unit), one->second) << unit.name;
        ++found;
      }
  EXPECT_EQ(found, expected.size());
}

// All families together. No two units have one name, so that a name says what kind of quantity it is.
TEST(Units, HaveNamesOfTheirOwn) {
  std::set<std::string_view> names;
  for (const UnitFamily& family : unit_families)
    for (const Unit& unit : family.units) EXPECT_TRUE(names.insert(unit.name).second) << unit.name;
}

}  // namespace
}  // namespace orrery
