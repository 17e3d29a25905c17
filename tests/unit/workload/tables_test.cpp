#include <gtest/gtest.h>

#include <numeric>

#include "orrery/base/error.hpp"
#include "orrery/workload/figures.hpp"
#include "orrery/workload/table_placement.hpp"

namespace orrery::workload {
namespace {

/// Tables of 16 columns on two NPUs, with their rows and the rows that a sample looks up.
Description four_tables(TableSharding sharding) {
  Description description{Dlrm{.dense_features = 13,
                               .bottom = {32, 16},
                               .tables = {{.rows = 100, .pooling = 1},
                                          {.rows = 60, .pooling = 2},
                                          {.rows = 50, .pooling = 8},
                                          {.rows = 10, .pooling = 1}},
                               .top = {32, 1}},
                          {}};
  description.parallel[Axis::dp] = 2;
  description.parallel.sharding.tables.sharding = sharding;
  return description;
}

TablePlacement placed(const Description& description) {
  return {std::get<Dlrm>(description.model), description.parallel};
}

std::vector<std::uint32_t> tables_of(const TablePlacement& placement, std::uint32_t npu) {
  std::vector<std::uint32_t> tables;
  for (const TablePart& part : placement.parts(npu)) tables.push_back(part.table);
  return tables;
}

TEST(Tables, TheLargestGoFirstEachToTheNpuWithLeast) {
  // By rows 100 | 60, 50 and then 10 to the first. By lookups 8 | 2, 1, 1, where of equal loads the first goes first.
  Description description = four_tables(TableSharding::table);
  const auto by_bytes = placed(description);
  EXPECT_EQ(tables_of(by_bytes, 0), (std::vector<std::uint32_t>{0, 3}));
  EXPECT_EQ(tables_of(by_bytes, 1), (std::vector<std::uint32_t>{1, 2}));
  description.parallel.sharding.tables.balance = TableBalance::lookups;
  const auto by_lookups = placed(description);
  EXPECT_EQ(tables_of(by_lookups, 0), (std::vector<std::uint32_t>{2}));
  EXPECT_EQ(tables_of(by_lookups, 1), (std::vector<std::uint32_t>{1, 0, 3}));
}

TEST(Tables, SharesFollowFromWhatAnNpuHolds) {
  // For a sample of each of two NPUs, NPU 1 must look up 2 and 8 rows of 16 values for both, and make two vectors for
  // each. All exchange as much as the NPU with most: two vectors for each of two samples, and 2 x 10 row numbers.
  const auto placement = placed(four_tables(TableSharding::table));
  EXPECT_EQ(placement.share(0), (TableShare{110 * 16, 2 * 2 * 16, 2 * 2 * 16}));
  EXPECT_EQ(placement.share(1), (TableShare{110 * 16, 2 * 10 * 16, 2 * 2 * 16}));
  EXPECT_EQ(placement.exchanged(), 2 * 2 * 16);
  EXPECT_EQ(placement.indices(), 2 * 10);
  EXPECT_EQ(placement.busiest(), 1);
  EXPECT_EQ(placement.mean(), (TableShare{110 * 16, 12 * 16, 4 * 16}));
}

TEST(Tables, RowsAndColumnsAndWholeTablesMix) {
  // Table 0 is divided by rows: each NPU holds 50 rows and makes a part of the vectors of both samples. Table 1 has
  // two parts of 10 and 6 columns. Tables 2 and 3 are whole.
  Description description = four_tables(TableSharding::table);
  auto& model = std::get<Dlrm>(description.model);
  model.tables[0].sharding = TableSharding::row;
  model.tables[1].sharding = TableSharding::column;
  description.parallel.sharding.tables.columns = 10;
  const auto placement = placed(description);
  ASSERT_EQ(tables_of(placement, 0), (std::vector<std::uint32_t>{2, 3}));
  ASSERT_EQ(tables_of(placement, 1), (std::vector<std::uint32_t>{1, 1}));
  EXPECT_EQ(placement.parts(1)[0].columns, 10);
  EXPECT_EQ(placement.parts(1)[1].columns, 6);
  EXPECT_EQ(placement.share(0), (TableShare{50 * 16 + 60 * 16, 16 + 2 * 9 * 16, 2 * 16 + 2 * 32}));
  EXPECT_EQ(placement.share(1), (TableShare{50 * 16 + 60 * 16, 16 + 2 * 2 * 16, 2 * 16 + 2 * 16}));
  EXPECT_EQ(placement.exchanged(), 2 * 32);
  EXPECT_EQ(placement.summed(), 2 * 16);
  EXPECT_EQ(placement.indices(), 1 + 2 * 9);
  const auto found = figures(description).stages.front().communication;
  const std::uint64_t numbers = 19 * 8, vectors = 64 * 2, sums = 32 * 2;
  EXPECT_EQ(found.at("all-to-all dp"), (CommunicationTotal{3, numbers + 2 * vectors}));
  EXPECT_EQ(found.at("reduce-scatter dp"), (CommunicationTotal{1, sums}));
  EXPECT_EQ(found.at("all-gather dp"), (CommunicationTotal{1, sums / 2}));
}

TEST(Tables, AllParametersAreHeldOnce) {
  // Whatever the division, the tables of all NPUs together must be those of the model, and all look-ups be done.
  for (const TableSharding sharding :
       {TableSharding::even, TableSharding::table, TableSharding::row, TableSharding::column}) {
    for (const std::uint32_t npus : {1U, 2U, 5U, 10U}) {
      Description description = four_tables(sharding);
      description.parallel[Axis::dp] = npus;
      description.parallel.sharding.tables.columns = 4;
      const auto placement = placed(description);
      TableShare all;
      for (std::uint32_t npu = 0; npu < npus; ++npu) {
        all.parameters += placement.share(npu).parameters;
        all.read += placement.share(npu).read;
      }
      EXPECT_EQ(all.parameters, 220 * 16) << npus;
      EXPECT_EQ(all.read, npus * 12 * 16) << npus;
      EXPECT_GE(placement.exchanged() + placement.summed(), 4 * 16) << npus;
    }
  }
}

TEST(Tables, OnlyCrossLayersTakeVectorsOfSeveralWidths) {
  // One of four tables has vectors of 8 values: dot products must refuse it, and cross layers take 4 x 16 + 8 values.
  Description description = four_tables(TableSharding::table);
  auto& model = std::get<Dlrm>(description.model);
  model.tables[2].width = 8;
  EXPECT_THROW(description.validate(), Error);
  model.cross_layers = 1;
  model.cross_rank = 4;
  description.validate();
  const std::uint64_t mlps = 14 * 32 + 33 * 16 + (4 * 16 + 8 + 1) * 32 + 33, cross = (4 * 16 + 8) * (2 * 4 + 1);
  EXPECT_EQ(figures(description).parameters, 170 * 16 + 50 * 8 + mlps + cross);
}

}  // namespace
}  // namespace orrery::workload
