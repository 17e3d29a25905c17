#include "orrery/base/text.hpp"

#include <gtest/gtest.h>

namespace orrery {
namespace {

// Numbers from 0 to 2e27 are written with at most four digits. The prefix is the largest that fits, and yotta beyond
// all.
TEST(Text, DecimalPrefixes) {
  EXPECT_EQ(with_prefix(0), "0");
  EXPECT_EQ(with_prefix(999), "999");
  EXPECT_EQ(with_prefix(1000), "1 k");
  EXPECT_EQ(with_prefix(175.12345e9), "175.1 G");
  EXPECT_EQ(with_prefix(2e27), "2000 Y");
}

// A cell has quotes if it has a comma, a quote or the end of a line. A text that a spreadsheet would take for a formula
// begins with an apostrophe; numbers with a sign remain numbers.
TEST(Text, CellsAreNoFormulas) {
  EXPECT_EQ(csv_cell("plain"), "plain");
  EXPECT_EQ(csv_cell("a,\"b\""), "\"a,\"\"b\"\"\"");
  EXPECT_EQ(csv_cell("=SUM(A1:A9)"), "'=SUM(A1:A9)");
  EXPECT_EQ(csv_cell("=HYPERLINK(\"x\",1)"), "\"'=HYPERLINK(\"\"x\"\",1)\"");
  for (const char* const text : {"+cmd", "-cmd", "@cmd", "\tcmd", "-", "-1-2"})
    EXPECT_EQ(csv_cell(text), std::string("'") + text);
  for (const char* const number : {"-1", "-1e-9", "0.5", "", "-inf"}) EXPECT_EQ(csv_cell(number), number);
}

// Sizes beside one of whole MiB are written with binary prefixes, those beside any other size with decimal ones.
// Without a prefix the bytes are exact, else there are two decimals.
TEST(Text, SizesAreInTheUnitsOfTheSizeBeside) {
  constexpr std::uint64_t gib = 1U << 30U, gb = 1'000'000'000;
  EXPECT_EQ(size_text(0, gib), "0 B");
  EXPECT_EQ(size_text(1023, gib), "1023 B");
  EXPECT_EQ(size_text(1024, gib), "1.00 KiB");
  EXPECT_EQ(size_text(gib - 1, gib), "1024.00 MiB");
  EXPECT_EQ(size_text(3 * gib / 2, gib), "1.50 GiB");
  EXPECT_EQ(size_text(~std::uint64_t{0}, gib), "16.00 EiB");
  EXPECT_EQ(size_text(999, gb), "999 B");
  EXPECT_EQ(size_text(80 * gb, 80 * gb), "80.00 GB");
  EXPECT_EQ(size_text(gib, 80 * gb), "1.07 GB");
  EXPECT_EQ(size_text(1500, 0), "1.50 kB");
}

}  // namespace
}  // namespace orrery
