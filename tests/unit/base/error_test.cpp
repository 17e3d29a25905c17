#include "orrery/base/error.hpp"

#include <gtest/gtest.h>

#include "orrery/base/notices.hpp"

namespace orrery {
namespace {

// An error knows the file, the byte, the NPU, the node, what was found, what was expected and what to do. Its message
// names all of them in one line.
TEST(Error, NamesEverythingThatIsKnown) {
  const Error error(ErrorCode::bad_input, {.file = "a.et", .byte_offset = 40, .npu = 3, .node = 17, .node_name = "x"},
                    "a loop", "a DAG", "Remove it.");
  EXPECT_STREQ(error.what(), "a.et: NPU 3, node 17 'x' (byte 40): a loop; expected a DAG. Remove it.");
  EXPECT_EQ(error.code(), ErrorCode::bad_input);
}

// An error knows only a part of its place. Its message leaves out the rest and its punctuation.
TEST(Error, LeavesOutWhatIsNot) {
  EXPECT_STREQ(Error(ErrorCode::usage, {}, "found").what(), "found");
  EXPECT_STREQ(Error(ErrorCode::usage, {.file = "f.yaml", .line = 7}, "found").what(), "f.yaml:7: found");
  EXPECT_STREQ(Error(ErrorCode::usage, {.line = 7, .key = "k"}, "found").what(), "line 7: key 'k': found");
  EXPECT_STREQ(Error(ErrorCode::usage, {.byte_offset = 9}, "found").what(), "(byte 9): found");
  EXPECT_STREQ(Error(ErrorCode::usage, {.node_name = "n"}, "found", "more").what(), "'n': found; expected more");
  EXPECT_STREQ(Error(ErrorCode::stuck, "as it is").what(), "as it is");
}

// An invariant that holds does nothing. One that is broken throws an internal error, which names the source file and
// asks for a report.
TEST(Check, SaysWhereItWasBroken) {
  EXPECT_NO_THROW(ensure(true, "fine"));
  try {
    ensure(false, "broken");
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::internal);
    const std::string text = error.what();
    EXPECT_TRUE(text.starts_with("broken (error_test.cpp:")) << text;
    EXPECT_TRUE(text.ends_with("). This is a fault of Orrery, please report it.")) << text;
  }
}

// Several NPUs add a notice of one kind. The list keeps the text of the lowest NPU and counts all of them.
TEST(Notices, KeepTheLowestNpuAndCount) {
  Notices notices;
  notices.add("kind", 5, "five");
  notices.add("kind", 9, "nine", 2);
  notices.add("kind", 2, "two");
  notices.add("other", 7, "seven");
  const auto& entry = notices.entries().at("kind");
  EXPECT_EQ(entry.text, "two");
  EXPECT_EQ(entry.npu, 2U);
  EXPECT_EQ(entry.count, 4U);
  EXPECT_EQ(notices.entries().size(), 2U);
}

// Two lists of notices are merged, either one into the other. Both results have the text of the lowest NPU and the sum
// of the counts.
TEST(Notices, MergeInAnyOrder) {
  Notices low, high, none;
  low.add("kind", 1, "one");
  high.add("kind", 8, "eight", 3);
  high.add("other", 8, "alone");
  Notices a = low, b = high;
  a.merge(high);
  b.merge(low);
  b.merge(none);
  for (const auto* notices : {&a, &b}) {
    EXPECT_EQ(notices->entries().at("kind").text, "one");
    EXPECT_EQ(notices->entries().at("kind").count, 4U);
    EXPECT_EQ(notices->entries().at("other").text, "alone");
  }
}

// A file has a warning of its own, and two NPUs read it: the warning counts for both and names the lower NPU.
TEST(Notices, AFileCountsForEveryNpuThatReadsIt) {
  Notices of_file, notices;
  of_file.add("kind", "in the file", 3);
  of_file.add("kind", "again");
  notices.merge_for(7, of_file);
  notices.merge_for(4, of_file);
  EXPECT_EQ(notices.entries().at("kind").text, "in the file");
  EXPECT_EQ(notices.entries().at("kind").npu, 4U);
  EXPECT_EQ(notices.entries().at("kind").count, 8U);
}

}  // namespace
}  // namespace orrery
