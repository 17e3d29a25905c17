#include <algorithm>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include "chrome_trace.hpp"
#include "orrery/base/output_file.hpp"
#include "orrery/base/text.hpp"
#include "orrery/base/text_output.hpp"
#include "orrery/config/npu_list.hpp"
#include "orrery/results/read.hpp"
#include "orrery/show/commands.hpp"

namespace orrery::show {
namespace {

/// Returns the NPUs of the list that the run has. Throws Error (usage) if it has none of them.
std::vector<config::NpuRange> npus_shown(const std::string& list, std::uint32_t num_npus) {
  const Place place{.key = "--npus"};
  auto ranges = config::parse_npu_list(list, config::any_npus, place, ErrorCode::usage);
  if (ranges.back().last < num_npus) return ranges;
  std::erase_if(ranges, [&](const auto& range) { return range.first >= num_npus; });
  if (ranges.empty())
    throw Error(ErrorCode::usage, place, fmt::format("found '{}'", list),
                fmt::format("NPUs of the run, which are below {}", num_npus));
  ranges.back().last = std::min(ranges.back().last, num_npus - 1);
  spdlog::warn("--npus: found '{}', but the run has {}: {} {} shown", list, counted(num_npus, "NPU"),
               config::to_text(ranges), ranges.size() == 1 && ranges[0].first == ranges[0].last ? "is" : "are");
  return ranges;
}

}  // namespace

void show_timeline(const ShowTimelineCommand& command) {
  const results::Timeline timeline(command.file);
  std::vector<config::NpuRange> ranges = {{0, timeline.num_npus() - 1}};
  if (command.npus) ranges = npus_shown(*command.npus, timeline.num_npus());
  check_output(command.chrome, command.force);
  TextOutput output(command.chrome);
  write_chrome_trace(timeline, ranges, output);
  output.commit();
}

}  // namespace orrery::show
