#include "orrery/run/progress.hpp"

#include <gtest/gtest.h>

#include <string>

namespace orrery::run {
namespace {

// Half of the nodes of 64 NPUs took 30 s, so 30 s are left. A terminal of 80 columns has room for all figures and a
// bar.
TEST(Progress, FillsALineOfATerminal) {
  const ProgressFigures half{
      .share = 0.5, .npus_done = 12, .num_npus = 64, .events_per_second = 3.4e6, .elapsed_s = 30, .simulated = {}};
  EXPECT_EQ(progress_bar(half, 80), "[###############---------------]  50.0 %  30 s left  3.4 M events/s  12/64 NPUs");
}

// The longest figures there are: 2^24 NPUs, and 100 hours left. For any width the line is shorter than the terminal, so
// that it does not wrap. From 60 columns on it has the share, and a bar.
TEST(Progress, NeverWraps) {
  const ProgressFigures longest{.share = 0.0101,
                                .npus_done = 1U << 24U,
                                .num_npus = 1U << 24U,
                                .events_per_second = 999.9e6,
                                .elapsed_s = 3600,
                                .simulated = {}};
  for (std::size_t columns = 0; columns < 300; ++columns) {
    const std::string line = progress_bar(longest, columns);
    EXPECT_LE(line.size(), columns - (columns > 0 ? 1 : 0)) << columns;
    EXPECT_EQ(line.find("1.0 %") != std::string::npos, columns > 7) << columns;
    EXPECT_EQ(line.starts_with('['), columns > 17) << columns;
  }
  EXPECT_NE(progress_bar(longest, 80).find("16777216/16777216 NPUs"), std::string::npos);
}

// A share just below 1 is shown as 99.9 %, and a bar that is not full; 1 as 100 % and a full bar.
TEST(Progress, ShowsTheEndOnlyAtTheEnd) {
  EXPECT_NE(progress_bar({.share = 0.99999, .simulated = {}}, 80).find("-]  99.9 %"), std::string::npos);
  EXPECT_NE(progress_bar({.share = 1, .simulated = {}}, 80).find("#] 100.0 %"), std::string::npos);
}

// 31.2 % of the nodes took 60 s, so about 132 s are left.
TEST(Progress, SaysTheSameInAFile) {
  const ProgressFigures third{.share = 0.312,
                              .npus_done = 0,
                              .num_npus = 8192,
                              .events_per_second = 3.41e6,
                              .elapsed_s = 60,
                              .simulated = Time::from_ps(412'900'000'000)};
  EXPECT_EQ(
      progress_text(third),
      "orrery: 31.2 % of nodes, 0 of 8192 NPUs done, 3.41 M events/s, 2 min 12 s left, simulated 412.9 ms in 1 min "
      "00 s");
}

// Before a hundredth of the nodes is done, nobody knows how long the rest takes.
TEST(Progress, DoesNotGuessEarly) {
  EXPECT_NE(progress_text({.share = 0.005, .elapsed_s = 10, .simulated = {}}).find("? left"), std::string::npos);
}

}  // namespace
}  // namespace orrery::run
