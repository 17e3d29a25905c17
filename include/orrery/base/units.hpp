#pragma once

#include <array>
#include <span>
#include <string_view>

namespace orrery {

/// A unit in which people write a quantity. The quantity in the unit that the program computes with is x * multiplier /
/// divisor; one of the two is 1, so that each conversion rounds once.
struct Unit {
  std::string_view name;
  double multiplier = 1;
  double divisor = 1;
};

/// Units of one kind of quantity. The first one is that which the program computes with.
struct UnitFamily {
  std::string_view si;  ///< the SI unit, as UDUNITS writes it
  std::span<const Unit> units;
  double si_multiplier = 1;  ///< multiplier of the first unit in SI units: si_multiplier / si_divisor
  double si_divisor = 1;

  /// Returns what one of a unit of this family is in SI units, rounded once.
  constexpr double to_si(const Unit& unit) const {
    return unit.multiplier * si_multiplier / (unit.divisor * si_divisor);
  }
};

namespace units {

inline constexpr double kibi = 1024.0;
inline constexpr double mebi = kibi * kibi;
inline constexpr double gibi = mebi * kibi;
inline constexpr double tebi = gibi * kibi;

inline constexpr std::array<Unit, 14> bandwidth{{{"GB/s"},
                                                 {"TB/s", 1e3},
                                                 {"MB/s", 1, 1e3},
                                                 {"kB/s", 1, 1e6},
                                                 {"B/s", 1, 1e9},
                                                 {"GiB/s", gibi / 1e9},
                                                 {"TiB/s", tebi / 1e9},
                                                 {"MiB/s", mebi / 1e9},
                                                 {"KiB/s", kibi / 1e9},
                                                 {"Gb/s", 1, 8},
                                                 {"Tb/s", 125},
                                                 {"Mb/s", 1, 8e3},
                                                 {"kb/s", 1, 8e6},
                                                 {"b/s", 1, 8e9}}};
inline constexpr std::array<Unit, 5> time{{{"ns"}, {"us", 1e3}, {"ms", 1e6}, {"s", 1e9}, {"ps", 1, 1e3}}};
inline constexpr std::array<Unit, 7> flops{{{"FLOPS"},
                                            {"kFLOPS", 1e3},
                                            {"MFLOPS", 1e6},
                                            {"GFLOPS", 1e9},
                                            {"TFLOPS", 1e12},
                                            {"PFLOPS", 1e15},
                                            {"EFLOPS", 1e18}}};
inline constexpr std::array<Unit, 9> bytes{{{"B"},
                                            {"kB", 1e3},
                                            {"MB", 1e6},
                                            {"GB", 1e9},
                                            {"TB", 1e12},
                                            {"KiB", kibi},
                                            {"MiB", mebi},
                                            {"GiB", gibi},
                                            {"TiB", tebi}}};

}  // namespace units

/// Units of bytes, of bytes per second, of simulated time and of FLOPs per second.
inline constexpr std::array<UnitFamily, 4> unit_families{
    {{"byte", units::bytes}, {"byte/s", units::bandwidth, 1e9}, {"s", units::time, 1, 1e9}, {"1/s", units::flops}}};

}  // namespace orrery
