#include "orrery/results/npu_records.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace orrery::results {
namespace {

npu::NpuRecord record_of(std::uint32_t npu, std::int64_t finish_ns) {
  npu::NpuRecord record;
  record.npu = NpuId(npu);
  record.finish = Time::from_ps(1000 * finish_ns);
  return record;
}

std::int64_t finish_of(const npu::NpuRecord& record) { return record.finish.ps() / 1000; }

// NPUs 0, 2 and 3 are of one class, and NPU 1 is alone.
class NpuRecordsOfClasses : public testing::Test {
 protected:
  const std::vector<std::uint32_t> class_of{0, 1, 0, 0};
  const NpuRecords records{{record_of(0, 5), record_of(1, 5)}, class_of};
};

// The record of an NPU is that of its class, and each record says how many NPUs have it.
TEST_F(NpuRecordsOfClasses, AreThoseOfTheFirstNpuOfEachClass) {
  ASSERT_EQ(records.size(), 4U);
  EXPECT_EQ(records[2].npu, NpuId(0));
  EXPECT_EQ(records[1].npu, NpuId(1));
  EXPECT_EQ(records.distinct().size(), 2U);
  EXPECT_EQ(records.count(0), 3U);
  EXPECT_EQ(records.count(1), 1U);
}

// Both classes end at 5 ns. NPU 0 is the first with the least time, and NPU 3 the last one with the most.
TEST_F(NpuRecordsOfClasses, NameTheFirstAndTheLastNpuOfAnExtreme) {
  EXPECT_EQ(records.least(finish_of).second, NpuId(0));
  EXPECT_EQ(records.most(finish_of).second, NpuId(3));
}

// NPU 1 ends at 7 ns and the others at 5 ns. A column has the times of all NPUs, or of some in a row.
TEST_F(NpuRecordsOfClasses, BecomeColumnsOfAllNpus) {
  const NpuRecords others({record_of(0, 5), record_of(1, 7)}, class_of);
  EXPECT_EQ(others.column<std::int64_t>(0, 4, finish_of), (std::vector<std::int64_t>{5, 7, 5, 5}));
  EXPECT_EQ(others.column<std::int64_t>(1, 2, finish_of), (std::vector<std::int64_t>{7, 5}));
  EXPECT_EQ(others.most(finish_of).second, NpuId(1));
}

// 3 NPUs have a record each. The extremes and the columns are those of single NPUs.
TEST(NpuRecords, OfEachNpuAreAClassEach) {
  const NpuRecords records({record_of(0, 5), record_of(1, 4), record_of(2, 5)});
  EXPECT_EQ(records.size(), 3U);
  EXPECT_EQ(records.least(finish_of).second, NpuId(1));
  EXPECT_EQ(records.most(finish_of).second, NpuId(2));
  EXPECT_EQ(records.column<std::int64_t>(1, 2, finish_of), (std::vector<std::int64_t>{4, 5}));
}

// A class whose record is of another NPU than its first one, and a class without a record, are internal errors.
TEST(NpuRecords, AreRefusedIfTheRepresentativeIsNotTheFirstOfItsClass) {
  const std::vector<std::uint32_t> class_of{0, 0};
  EXPECT_THROW(NpuRecords({record_of(1, 5)}, class_of), Error);
  EXPECT_THROW(NpuRecords({}, class_of), Error);
}

}  // namespace
}  // namespace orrery::results
