#include "orrery/config/npu_list.hpp"

#include <gtest/gtest.h>

namespace orrery::config {
namespace {

// A list of NPUs has single numbers and ranges. It is read as ranges and written back without spaces.
TEST(NpuList, RangesAndSingleNpus) {
  const auto ranges = parse_npu_list("3, 17,64-71", 72, {});
  EXPECT_EQ(ranges, (std::vector<NpuRange>{{3, 3}, {17, 17}, {64, 71}}));
  EXPECT_EQ(to_text(ranges), "3,17,64-71");
  EXPECT_EQ(parse_npu_list("0", 1, {}), (std::vector<NpuRange>{{0, 0}}));
}

std::string refusal(std::string_view text, std::uint32_t num_npus) {
  try {
    parse_npu_list(text, num_npus, {.key = "npus"}, ErrorCode::usage);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::usage);
    return error.what();
  }
  return "";
}

// A list of NPUs is malformed, beyond the number of NPUs, or not in ascending order. The error says which of these it
// is.
TEST(NpuList, SaysWhatItCannotRead) {
  for (const auto* text : {"8", "0-8", "", "1,", "a", "-1", "1-", "0x1"}) {
    EXPECT_NE(refusal(text, 8).find("below the number of NPUs, 8"), std::string::npos) << text;
    EXPECT_NE(refusal(text, 8).find("npus"), std::string::npos) << text;
  }
  EXPECT_NE(refusal("5-3", 8).find("a range that ascends"), std::string::npos);
  for (const auto* text : {"3,3", "5,4", "0-4,2"})
    EXPECT_NE(refusal(text, 8).find("ascending order, each once"), std::string::npos) << text;
}

}  // namespace
}  // namespace orrery::config
