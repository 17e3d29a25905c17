#include "orrery/base/quantity_text.hpp"

#include <random>

#include "expect_error.hpp"

namespace orrery::config {
namespace {

// Bandwidths are written in bytes or bits, with decimal or binary prefixes. They are read as bytes per nanosecond.
TEST(Units, Bandwidths) {
  EXPECT_EQ(parse_bandwidth("400 GB/s").bytes_per_ns(), 400);
  EXPECT_EQ(parse_bandwidth("400GB/s").bytes_per_ns(), 400);
  EXPECT_EQ(parse_bandwidth("50 GiB/s").bytes_per_ns(), 50 * (1073741824.0 / 1e9));
  EXPECT_EQ(parse_bandwidth("37.7 GiB/s").bytes_per_ns(), 37.7 * (1073741824.0 / 1e9));
  EXPECT_EQ(parse_bandwidth("400 Gb/s").bytes_per_ns(), 50);
  EXPECT_EQ(parse_bandwidth("1.5 TB/s").bytes_per_ns(), 1500);
  EXPECT_EQ(parse_bandwidth("1 B/s").bytes_per_ns(), 1e-9);
}

// Times, compute rates and sizes are written with their units. They are read exactly, up to the largest size.
TEST(Units, TimesRatesAndSizes) {
  EXPECT_EQ(parse_nanoseconds("500 ns"), 500);
  EXPECT_EQ(parse_nanoseconds("1 us"), 1000);
  EXPECT_EQ(parse_nanoseconds("1500 ps"), 1.5);
  EXPECT_EQ(parse_nanoseconds("0 ns"), 0);
  EXPECT_EQ(parse_nanoseconds("1e3 ns"), 1000);
  EXPECT_EQ(parse_seconds("2 min"), 120);
  EXPECT_EQ(parse_flops("989 TFLOPS"), 989e12);
  EXPECT_EQ(parse_bytes("64 MiB"), Bytes(64U << 20U));
  EXPECT_EQ(parse_bytes("1.5 kB"), Bytes(1500));
  EXPECT_EQ(parse_bytes("18446744073709551615 B"), Bytes(18446744073709551615U));
}

// A number has no unit. The error names the place and shows an example with a unit.
TEST(Units, ABareNumberIsAnErrorThatShowsAnExample) {
  const Place place{.file = "a.yaml", .line = 3, .key = "system.x"};
  expect_error([&] { parse_bandwidth("400", place); }, ErrorCode::bad_input,
               {"a.yaml:3", "system.x", "found '400', a number without a unit", "'400 GB/s'"});
  expect_error([] { parse_nanoseconds("5"); }, ErrorCode::bad_input, {"such as '500 ns'", "'5 ns'"});
  expect_error([] { parse_flops("989"); }, ErrorCode::bad_input, {"989 TFLOPS"});
  expect_error([] { parse_bytes("80"); }, ErrorCode::bad_input, {"64 MiB"});
}

// A quantity has an unknown unit, a sign, a leading zero, a fraction of a byte, or is out of range. Each is refused
// with its reason.
TEST(Units, Refusals) {
  expect_error([] { parse_bandwidth("400 GBs"); }, ErrorCode::bad_input, {"unknown unit 'GBs'", "GB/s"});
  expect_error([] { parse_bandwidth("-4 GB/s"); }, ErrorCode::bad_input, {"negative"});
  expect_error([] { parse_bandwidth("inf GB/s"); }, ErrorCode::bad_input, {"found 'inf GB/s'"});
  expect_error([] { parse_bandwidth("1e999 GB/s"); }, ErrorCode::bad_input, {"out of range"});
  expect_error([] { parse_bandwidth(""); }, ErrorCode::bad_input, {"found ''"});
  expect_error([] { parse_nanoseconds("012 ns"); }, ErrorCode::bad_input, {"leading zero"});
  expect_error([] { parse_nanoseconds("1,000 ns"); }, ErrorCode::bad_input, {"unknown unit"});
  expect_error([] { parse_nanoseconds("0x10 ns"); }, ErrorCode::bad_input, {"unknown unit"});
  expect_error([] { parse_bytes("0.3 B"); }, ErrorCode::bad_input, {"whole number of bytes"});
  expect_error([] { parse_bytes("18446744073709551616 B"); }, ErrorCode::bad_input, {"whole number of bytes"});
  expect_error([] { parse_count("012", 1, 100); }, ErrorCode::bad_input, {"octal"});
  expect_error([] { parse_count("0", 1, 100); }, ErrorCode::bad_input, {"1 to 100"});
  expect_error([] { parse_count("1.5", 1, 100); }, ErrorCode::bad_input, {"whole number"});
}

// 20,000 random quantities are written as text with units. The text reads back as the same number, bit by bit, and
// common values are written as people write them.
TEST(Units, WhatIsWrittenIsReadBackBitForBit) {
  std::mt19937_64 random(1);
  std::uniform_real_distribution<double> exponent(-8, 12);
  for (int i = 0; i < 20000; ++i) {
    const double x = std::pow(10.0, exponent(random));
    EXPECT_EQ(parse_bandwidth(to_text(Bandwidth::from_bytes_per_ns(x))).bytes_per_ns(), x);
    EXPECT_EQ(parse_nanoseconds(nanoseconds_to_text(x)), x);
    EXPECT_EQ(parse_seconds(seconds_to_text(x)), x);
    EXPECT_EQ(parse_flops(flops_to_text(x)), x);
  }
  EXPECT_EQ(to_text(parse_bandwidth("50 GiB/s")), "50 GiB/s");
  EXPECT_EQ(to_text(parse_bandwidth("400 GB/s")), "400 GB/s");
  EXPECT_EQ(flops_to_text(989e12), "989 TFLOPS");
  EXPECT_EQ(nanoseconds_to_text(0), "0 ns");
}

}  // namespace
}  // namespace orrery::config
