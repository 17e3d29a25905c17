#include "repeats.hpp"

#include <gtest/gtest.h>

#include <random>
#include <string>

namespace orrery::synthesis {
namespace {

std::vector<std::uint32_t> symbols(const std::string& text) { return {text.begin(), text.end()}; }

/// Writes parts as text: a loop as "(body)3".
std::string written(std::span<const Part> parts) {
  std::string text;
  for (const Part& part : parts) {
    if (part.is_loop())
      text += '(' + written(*part.body) + ')' + std::to_string(part.count);
    else
      text += static_cast<char>(part.symbol);
  }
  return text;
}

std::string loops_of(const std::string& text) { return written(find_loops(symbols(text))); }

/// A body that stands three times in a row is a loop; a sequence without repeats, or an empty one, has none.
TEST(Repeats, FindsALoop) {
  EXPECT_EQ(loops_of("xabcabcabcy"), "x(abc)3y");
  EXPECT_EQ(loops_of("abcdefg"), "abcdefg");
  EXPECT_EQ(loops_of(""), "");
}

/// Bodies of one and two symbols that stand twice are no loop; three times, or with three symbols twice, they are.
TEST(Repeats, ShortBodiesNeedThreeIterations) {
  EXPECT_EQ(loops_of("aab"), "aab");
  EXPECT_EQ(loops_of("aaab"), "(a)3b");
  EXPECT_EQ(loops_of("ababx"), "ababx");
  EXPECT_EQ(loops_of("abcabcx"), "(abc)2x");
}

/// Three passes over three layers each are a loop over loops.
TEST(Repeats, FindsLoopsOverLoops) { EXPECT_EQ(loops_of("rabcabcabcsrabcabcabcsrabcabcabcs"), "(r(abc)3s)3"); }

TEST(Repeats, ALoopHasOneRotationWhereverItStands) {
  // Before the second stretch stands a "c", with which one could begin a "(cab)3" of another rotation.
  EXPECT_EQ(loops_of("xabcabcabcyzcabcabcabcw"), "x(abc)3yzc(abc)3w");
}

/// 300 random sequences of repeated bodies are the same again after their loops are written out.
TEST(Repeats, FlatteningGivesTheSequenceBack) {
  std::mt19937 random(1);
  for (int round = 0; round < 300; ++round) {
    std::vector<std::uint32_t> sequence;
    while (sequence.size() < 60) {
      std::vector<std::uint32_t> body(1 + random() % 5);
      for (auto& symbol : body) symbol = static_cast<std::uint32_t>(random() % 3);
      for (std::uint64_t i = random() % 6; i > 0; --i) sequence.insert(sequence.end(), body.begin(), body.end());
    }
    std::vector<std::uint32_t> again;
    flatten(find_loops(sequence), again);
    EXPECT_EQ(again, sequence);
  }
}

}  // namespace
}  // namespace orrery::synthesis
