#include "orrery/base/faults.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "orrery/base/text.hpp"

namespace orrery {
namespace {

Error in_trace(std::uint32_t npu, std::uint64_t node, std::string_view text) {
  return {ErrorCode::bad_input, {.file = fmt::format("w.{}.et", npu), .npu = npu, .node = node}, text};
}

// The same faults are added in two opposite orders, one of them twice. Both lists tell each fault once, ordered by NPU
// and node, with faults of no NPU first.
TEST(Faults, AreToldAlikeInWhateverOrderTheyWereFound) {
  const std::vector<Error> found = {in_trace(10, 3, "c"),
                                    in_trace(2, 9, "b"),
                                    in_trace(2, 1, "a"),
                                    in_trace(2, 1, "a"),
                                    {ErrorCode::bad_input, {.file = "z.yaml", .line = 4}, "first of all"}};
  Faults forwards, backwards;
  for (auto at = found.begin(); at != found.end(); ++at) forwards.add(*at);
  for (auto at = found.rbegin(); at != found.rend(); ++at) backwards.add(*at);
  const std::vector<std::string> texts = {"z.yaml:4: first of all", "w.2.et: NPU 2, node 1: a",
                                          "w.2.et: NPU 2, node 9: b", "w.10.et: NPU 10, node 3: c"};
  EXPECT_EQ(forwards.texts(), texts);
  EXPECT_EQ(backwards.texts(), texts);
}

// Three NPUs read one file with one fault. The list tells the fault once, for the lowest NPU.
TEST(Faults, OfOneFileForManyNpusAreOfTheLowest) {
  Faults faults;
  for (const std::uint32_t npu : {5U, 2U, 7U})
    faults.add(Error(ErrorCode::bad_input, {.file = "all.et", .npu = npu, .node = 1}, "the same"));
  EXPECT_EQ(faults.texts(), std::vector<std::string>{"all.et: NPU 2, node 1: the same"});
}

// A file has 57 faults, then 5057. The list shows as many as the limit says and counts the others; it keeps at most
// 1000.
TEST(Faults, OfOneFileAreShownUpToALimit) {
  Faults faults;
  for (std::uint64_t i = 0; i < 57; ++i) faults.add(in_trace(0, i, "x"));
  EXPECT_EQ(faults.texts().size(), 21U);
  EXPECT_EQ(faults.texts().back(), "w.0.et: and 37 more faults in this file");
  EXPECT_EQ(faults.texts(56).back(), "w.0.et: and 1 more fault in this file");
  for (std::uint64_t i = 0; i < 5000; ++i) faults.add(in_trace(0, i, "x"));
  EXPECT_EQ(faults.count(), 1000U);
  EXPECT_EQ(faults.texts().back(), "w.0.et: and more than 980 more faults in this file");
}

// A list without faults throws nothing. One fault is thrown as it is, several are thrown as one error with a line for
// each, and a long list points to 'orrery check'.
TEST(Faults, AreThrownAsOneError) {
  Faults faults;
  EXPECT_NO_THROW(faults.raise());
  EXPECT_TRUE(faults.attempt([] {}));
  EXPECT_FALSE(faults.attempt([] { throw in_trace(1, 2, "alone"); }));
  const auto raised = [&] {
    try {
      faults.raise();
    } catch (const Error& error) {
      return std::pair(error.code(), std::string(error.what()));
    }
    return std::pair(ErrorCode::internal, std::string("nothing"));
  };
  EXPECT_EQ(raised(), std::pair(ErrorCode::bad_input, std::string("w.1.et: NPU 1, node 2: alone")));
  faults.add(Error(ErrorCode::usage, "of usage"));
  EXPECT_EQ(raised(), std::pair(ErrorCode::usage, std::string("the input has several faults\n  of usage\n  "
                                                              "w.1.et: NPU 1, node 2: alone")));
  for (std::uint32_t npu = 0; npu < 40; ++npu) faults.add(in_trace(npu, 1, "x"));
  EXPECT_NE(raised().second.find("\n  and more: 'orrery check' lists them all"), std::string::npos);
}

// An attempt breaks an invariant of the program. The error passes through, and the list of faults stays empty.
TEST(Faults, AreNotWhatIsWrongWithTheProgram) {
  Faults faults;
  EXPECT_THROW(faults.attempt([] { ensure(false, "broken"); }), Error);
  EXPECT_TRUE(faults.empty());
}

// A number is written with its noun. The noun is singular for 1 and plural for all other numbers.
TEST(Text, Counts) {
  EXPECT_EQ(counted(0, "message"), "0 messages");
  EXPECT_EQ(counted(1, "message"), "1 message");
  EXPECT_EQ(counted(2, "entry", "entries"), "2 entries");
}

// A list of two NPUs is written in full. Of a list of thirteen, ten are written and three are counted.
TEST(Text, ListsAtMostTen) {
  std::vector<NpuId> npus = {NpuId(3), NpuId(1)};
  EXPECT_EQ(list(npus), "3, 1");
  npus.resize(13, NpuId(7));
  EXPECT_EQ(list(npus), "3, 1, 7, 7, 7, 7, 7, 7, 7, 7 and 3 more");
}

// A device, a folder and a missing file are read as text. Each is refused with an error that says what it is.
TEST(Text, IsReadFromRegularFilesOnly) {
  const auto refusal = [](const std::filesystem::path& path) {
    try {
      read_text(path);
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  EXPECT_EQ(refusal("/dev/zero"), "/dev/zero: this is not a regular file; expected a text file that can be read");
  EXPECT_NE(refusal("/dev").find("this is a directory"), std::string::npos);
  EXPECT_NE(refusal("/dev/none/there").find("there is no such file"), std::string::npos);
}

}  // namespace
}  // namespace orrery
