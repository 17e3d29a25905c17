#include "trace_files.hpp"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "orrery/base/error.hpp"
#include "orrery/base/text.hpp"
#include "orrery/trace/store.hpp"

namespace orrery::run {
namespace {

/// Which NPUs have a file, as the names in the folder tell.
struct FilesThere {
  std::vector<bool> of_npu;   ///< [num_npus]
  std::uint64_t beyond = 0;   ///< files of NPUs that are not there
  std::uint32_t highest = 0;  ///< the highest of these NPUs
};

/// Returns the number in a name that begins with `before` and ends with `after`.
std::optional<std::uint32_t> number_in(std::string_view name, std::string_view before, std::string_view after) {
  if (name.size() <= before.size() + after.size() || !name.starts_with(before) || !name.ends_with(after)) return {};
  const auto digits = name.substr(before.size(), name.size() - before.size() - after.size());
  std::uint32_t number = 0;
  const auto [end, failure] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  if (failure != std::errc() || end != digits.data() + digits.size() || fmt::to_string(number) != digits) return {};
  return number;
}

/// Returns the files of a pattern; nothing if the number of the NPU stands elsewhere than once in the name of the file.
std::optional<FilesThere> files_there(const std::string& pattern, std::uint32_t num_npus) {
  const std::filesystem::path path(pattern);
  const std::string name = path.filename().string();
  const auto at = name.find(npu_placeholder);
  if (at == std::string::npos || pattern.find(npu_placeholder) != pattern.rfind(npu_placeholder)) return {};
  const std::string before = name.substr(0, at), after = name.substr(at + npu_placeholder.size());
  FilesThere there{std::vector<bool>(num_npus)};
  std::error_code failure;
  const auto folder = path.has_parent_path() ? path.parent_path() : std::filesystem::path(".");
  for (std::filesystem::directory_iterator entry(folder, failure), end; !failure && entry != end;
       entry.increment(failure)) {
    const auto number = number_in(entry->path().filename().string(), before, after);
    if (!number) continue;
    if (*number < num_npus) {
      there.of_npu[*number] = true;
    } else {
      ++there.beyond;
      there.highest = std::max(there.highest, *number);
    }
  }
  return there;
}

/// Returns what decides how many NPUs there are.
std::string_view decides_npus(TraceOwner owner) {
  return owner == TraceOwner::system ? "system.network.dimensions, whose sizes multiply to the NPUs" : "the job's npus";
}

/// Returns what to do about NPUs that have no file, of which `missing` is the lowest.
std::string hint_for_missing(const std::string& pattern, TraceOwner owner, std::uint32_t missing) {
  try {
    if (missing > 0 && trace::describe_file(name_for_npu(pattern, 0), {}, true).format == "kineto")
      return fmt::format(
          "These are recordings of PyTorch's profiler (kineto), of which each rank has one. "
          "--replicate {} (workload.replicate) makes the other ranks from those that are there.",
          missing);
  } catch (const Error&) {  // what is wrong with the file is told when it is read
  }
  return fmt::format("Change workload.traces, or {}.", decides_npus(owner));
}

}  // namespace

void compare_trace_files(const config::Workload& workload, TraceOwner owner, std::uint32_t num_npus, Faults& faults,
                         Notices& notices) {
  const std::string_view whole = owner == TraceOwner::system ? "the system" : "the job";
  if (workload.traces.size() != 1) return;
  if (workload.recording.replicate > 0) num_npus = std::min(num_npus, workload.recording.replicate);
  const auto& pattern = workload.traces.front().pattern;
  const auto there = files_there(pattern, num_npus);
  if (!there) return;
  const auto& has_file = there->of_npu;
  const auto missing = static_cast<std::uint32_t>(std::ranges::find(has_file, false) - has_file.begin());
  const bool is_cut = std::ranges::find(has_file.begin() + missing, has_file.end(), true) == has_file.end();
  if (missing < num_npus && is_cut)
    faults.add(Error(ErrorCode::bad_input, {.file = name_for_npu(pattern, missing), .npu = missing},
                     missing == 0 ? "there is no such file, nor that of any other NPU"
                                  : fmt::format("there is no such file: there are traces for {}, but {} has {}",
                                                counted(missing, "NPU"), whole, num_npus),
                     fmt::format("traces for {}", counted(num_npus, "NPU")),
                     hint_for_missing(pattern, owner, missing)));
  if (there->beyond == 0 || workload.surplus == config::SurplusTraces::of_no_concern) return;
  const Place place{.file = name_for_npu(pattern, there->highest), .npu = there->highest};
  const auto found =
      fmt::format("there are traces for {} more than the {} of {}", counted(there->beyond, "NPU"), num_npus, whole);
  if (workload.recording.replicate > 0)
    notices.add("surplus-traces", num_npus,
                fmt::format("workload.replicate makes all ranks from the first {}: the recordings of {} are not used",
                            num_npus, counted(there->beyond, "other rank")));
  else if (workload.surplus == config::SurplusTraces::ignored)
    notices.add("surplus-traces", num_npus, fmt::format("{}: {}: ignored, as in ASTRA-sim", place.file, found));
  else
    faults.add(
        Error(ErrorCode::bad_input, place, found, fmt::format("traces for {}", counted(num_npus, "NPU")),
              fmt::format("Change {}, or say which traces count: workload.traces: [{{npus: 0-{}, file: \"{}\"}}]",
                          decides_npus(owner), num_npus - 1, pattern)));
}

}  // namespace orrery::run
