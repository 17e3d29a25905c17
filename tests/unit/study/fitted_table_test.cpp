#include "fitted_table.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstddef>
#include <string>
#include <vector>

#include "orrery/results/metric_text.hpp"

namespace orrery::study {

using results::memory_text;
using results::metric_text;

namespace {

using FittedLines = std::vector<std::string>;

/// A small table has its heads in one line, and aligns numbers on the right.
TEST(FittedTable, SmallTablesStayAsTheyAre) {
  std::size_t left_out = 7;
  EXPECT_EQ(fitted_lines({{"trial", {"1", "23"}}, {"step time", {"4 ms", "12.5 ms"}}}, left_out),
            (FittedLines{"trial  step time", "    1       4 ms", "   23    12.5 ms"}));
  EXPECT_EQ(left_out, 0);
}

/// Nine columns with heads of 12 characters are 124 wide. Divided heads make them 8 * 8 + 6 + 16: nothing is left out.
TEST(FittedTable, LongHeadsAreDividedFirst) {
  std::vector<FittedColumn> columns(9, {.head = "micro_batch_", .cells = {"1"}, .is_optional = true});
  columns[0].head = "peak memory";
  std::size_t left_out = 0;
  const FittedLines lines = fitted_lines(columns, left_out);
  EXPECT_EQ(left_out, 0);
  ASSERT_EQ(lines.size(), 3);
  EXPECT_EQ(lines[0].substr(0, 14), "  peak  micro_");
  EXPECT_EQ(lines[1].substr(0, 14), "memory  batch_");
  EXPECT_EQ(lines[2].substr(0, 14), "     1       1");
}

/// Columns of 30 characters: three fit into 100. Of five, the last optional ones are left out, and the others stay even
/// if they stand behind them.
TEST(FittedTable, TheLastOptionalColumnsAreLeftOut) {
  std::vector<FittedColumn> columns;
  for (const char letter : {'a', 'b', 'c', 'd', 'e'})
    columns.push_back({.head = std::string(30, letter), .cells = {"1"}, .is_optional = letter != 'e'});
  std::size_t left_out = 0;
  const FittedLines lines = fitted_lines(columns, left_out);
  EXPECT_EQ(left_out, 2);
  EXPECT_EQ(lines[0], std::string(30, 'a') + "  " + std::string(30, 'b') + "  " + std::string(30, 'e'));
}

/// Values of all kinds of units, as people write them.
TEST(MetricText, HasUnits) {
  EXPECT_EQ(metric_text("step_time", "s", 0.0312), "31.2 ms");
  EXPECT_EQ(metric_text("step_time", "s", 4.2e-6), "4.2 µs");
  EXPECT_EQ(metric_text("peak_memory", "byte", 74.47085e9), "74.47 GB");
  EXPECT_EQ(metric_text("mfu", "1", 0.5928), "59.3 %");
  EXPECT_EQ(metric_text("metrics_replicas", "1", 16), "16");
  EXPECT_EQ(metric_text("tokens_per_s", "1/s", 1215241.4), "1,215,241");
  EXPECT_EQ(metric_text("tokens_per_s", "1/s", 999.96), "1000");
  EXPECT_EQ(metric_text("capex", "USD", 50429440), "50.43 M USD");
  EXPECT_EQ(metric_text("capex", "USD", 796960), "796,960 USD");
  EXPECT_EQ(metric_text("power", "W", 1165000), "1.165 MW");
  EXPECT_EQ(metric_text("energy_per_step", "J", -12), "-12 J");
  EXPECT_EQ(metric_text("step_time", "s", std::nan("")), "-");
}

/// A use of memory stands beside the size, in the units of the size where both are as large.
TEST(MetricText, MemoryStandsBesideItsSize) {
  EXPECT_EQ(memory_text(74.47e9, 80e9), "74.47 of 80 GB");
  EXPECT_EQ(memory_text(415.72e6, 80e9), "415.72 MB of 80 GB");
  EXPECT_EQ(memory_text(72.0 * (1 << 30), 80.0 * (1 << 30)), "72.00 of 80 GiB");
  EXPECT_EQ(memory_text(74.47e9, 0), "74.47 GB");
}

}  // namespace
}  // namespace orrery::study
