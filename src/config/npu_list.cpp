#include "orrery/config/npu_list.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "orrery/base/quantity_text.hpp"
#include "orrery/base/text.hpp"

namespace orrery::config {
namespace {

constexpr std::string_view blanks = " \t";

}  // namespace

NpuRange parse_npu_range(std::string_view text, std::uint32_t num_npus, const Place& place, ErrorCode code) {
  const auto refuse = [&](std::string_view expected) {
    throw Error(code, place, fmt::format("found '{}'", cited(text)), expected);
  };
  const std::string expected = "an NPU or a range such as 0-31" +
                               (num_npus == any_npus ? "" : fmt::format(", below the number of NPUs, {}", num_npus));
  const auto dash = text.find('-');
  const std::uint64_t limit = num_npus == 0 ? 0 : num_npus - 1;
  const auto bound = [&](std::string_view part) -> std::uint32_t {
    try {
      if (!part.empty()) return static_cast<std::uint32_t>(parse_count(part, 0, limit));
    } catch (const Error&) {
    }
    refuse(expected);
    return 0;
  };
  NpuRange range;
  range.first = bound(text.substr(0, dash));
  range.last = dash == std::string_view::npos ? range.first : bound(text.substr(dash + 1));
  if (range.last < range.first) refuse("a range that ascends");
  return range;
}

std::vector<NpuRange> parse_npu_list(std::string_view text, std::uint32_t num_npus, const Place& place,
                                     ErrorCode code) {
  std::vector<NpuRange> ranges;
  for (std::size_t at = 0; at <= text.size();) {
    const auto comma = std::min(text.find(',', at), text.size());
    ranges.push_back(parse_npu_range(trimmed(text.substr(at, comma - at)), num_npus, place, code));
    if (ranges.size() > 1 && ranges.back().first <= ranges[ranges.size() - 2].last)
      throw Error(code, place, fmt::format("found '{}'", cited(text)), "NPUs in ascending order, each once");
    at = comma + 1;
  }
  return ranges;
}

std::string to_text(const std::vector<NpuRange>& ranges) {
  std::string text;
  for (const NpuRange& range : ranges) {
    if (!text.empty()) text += ",";
    text += range.first == range.last ? fmt::to_string(range.first) : fmt::format("{}-{}", range.first, range.last);
  }
  return text;
}

}  // namespace orrery::config
