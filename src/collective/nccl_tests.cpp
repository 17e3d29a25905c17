// Reads what nccl-tests and rccl-tests print.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>
#include <set>
#include <span>

#include "orrery/base/error.hpp"
#include "orrery/base/text.hpp"
#include "orrery/collective/measured_series.hpp"

namespace orrery::collective {
namespace {

std::vector<std::string_view> words_of(std::string_view line) {
  std::vector<std::string_view> words;
  for (std::size_t at = line.find_first_not_of(" \t\r"); at != std::string_view::npos;) {
    const auto end = std::min(line.find_first_of(" \t\r", at), line.size());
    words.push_back(line.substr(at, end - at));
    at = line.find_first_not_of(" \t\r", end);
  }
  return words;
}

std::optional<double> number(std::string_view word) {
  double value = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
  if (error != std::errc() || end != word.data() + word.size() || !std::isfinite(value)) return {};
  return value;
}

/// Says whether words are those of a line of results: size, count, type, redop, root, time and more.
bool is_result(std::span<const std::string_view> words) {
  constexpr std::size_t least = 8;
  const auto is_whole = [](std::string_view word) {
    return word.find_first_not_of("0123456789") == std::string_view::npos;
  };
  const auto begins_with_letter = [](std::string_view word) {
    return (word.front() >= 'a' && word.front() <= 'z') || (word.front() >= 'A' && word.front() <= 'Z');
  };
  return words.size() >= least && is_whole(words[0]) && is_whole(words[1]) && begins_with_letter(words[2]) &&
         begins_with_letter(words[3]) && number(words[4]) && number(words[5]);
}

/// Returns a line without the tag that a launcher put before it, such as "[1,0]<stdout>:" (mpirun --tag-output), "12: "
/// (srun --label) or "node7: " (pdsh). Lines that are no results begin with #.
std::string_view without_tag(std::string_view line) {
  if (const auto at = line.find('#'); at != std::string_view::npos) return line.substr(at);
  for (std::size_t at = 0; at < line.size(); ++at) {
    const bool may_begin = at == 0 || std::string_view(" \t:>|]").find(line[at - 1]) != std::string_view::npos;
    if (may_begin && is_result(words_of(line.substr(at)))) return line.substr(at);
  }
  return line;
}

}  // namespace

MeasuredSeries read_nccl_tests(const std::filesystem::path& file) {
  return parse_nccl_tests(read_text(file), file.string());
}

namespace {

/// Sorts the points, keeps the first of each size, and refuses a file without results.
MeasuredSeries whole_series(MeasuredSeries series, std::size_t num_hosts, const std::string& name) {
  if (series.points.empty() || series.ranks < 2)
    throw Error(ErrorCode::bad_input, {.file = name},
                fmt::format("found {} and {}", counted(series.ranks, "rank"), counted(series.points.size(), "result")),
                "what nccl-tests print: a line '#  Rank ...' for each of two or more ranks, and a line for each size");
  series.hosts = static_cast<std::uint32_t>(std::max<std::size_t>(num_hosts, 1));
  std::ranges::stable_sort(series.points, {}, &MeasuredCollective::bytes);
  const auto same = std::ranges::unique(series.points, {}, &MeasuredCollective::bytes);
  series.points.erase(same.begin(), same.end());
  return series;
}

/// Returns the microseconds of a result: out of place, or in place where nothing else was measured.
double json_microseconds(const nlohmann::json& result) {
  const nlohmann::json& place = result.contains("out_of_place") && result["out_of_place"].is_object()
                                    ? result["out_of_place"]
                                    : result.at("in_place");
  return (place.contains("time") ? place["time"] : place.at("cpu_time")).get<double>();
}

/// "config" has the devices with their hosts, and "results" the sizes with their times in microseconds.
MeasuredSeries parse_json(std::string_view text, const std::string& name) {
  constexpr std::string_view expected =
      "what nccl-tests write with -J: config.devices with hostname, and results with "
      "size and out_of_place.time in microseconds";
  MeasuredSeries series;
  std::set<std::string> hosts;
  try {
    const auto json = nlohmann::json::parse(text);
    for (const auto& device : json.at("config").at("devices")) {
      ++series.ranks;
      hosts.insert(device.at("hostname").get<std::string>());
    }
    for (const auto& result : json.at("results")) {
      const double bytes = result.at("size").get<double>(), us = json_microseconds(result);
      if (!(us > 0) || !std::isfinite(us))
        throw Error(ErrorCode::bad_input, {.file = name}, fmt::format("found a time of {} us for {} bytes", us, bytes),
                    "a time of more than 0 us");
      if (bytes > 0) series.points.push_back({bytes, us * 1e-6});
    }
  } catch (const nlohmann::json::parse_error& error) {
    throw Error(ErrorCode::bad_input, {.file = name, .byte_offset = error.byte}, "this is no JSON",
                std::string(expected));
  } catch (const nlohmann::json::exception& error) {
    throw Error(ErrorCode::bad_input, {.file = name}, fmt::format("found other JSON ({})", error.what()),
                std::string(expected));
  }
  return whole_series(std::move(series), hosts.size(), name);
}

}  // namespace

/// The lines of ranks are "#  Rank  0 Group  0 Pid 1234 on HOST device  0 ...", those of results
/// "size count type redop root time algbw busbw ...": times in microseconds, out of place first.
MeasuredSeries parse_nccl_tests(std::string_view text, const std::string& name) {
  if (const auto first = text.find_first_not_of(" \t\r\n"); first != std::string_view::npos && text[first] == '{')
    return parse_json(text, name);
  MeasuredSeries series;
  std::set<std::string_view> hosts;
  std::uint64_t line_number = 0;
  while (!text.empty()) {
    const auto end = text.find('\n');
    const auto words = words_of(without_tag(text.substr(0, end)));
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    ++line_number;
    if (words.size() > 2 && words[0] == "#" && words[1] == "Rank") {
      ++series.ranks;
      if (const auto on = std::ranges::find(words, "on"); on != words.end() && on + 1 != words.end())
        hosts.insert(on[1]);
    }
    if (words.size() < 8 || !number(words[0]) || !number(words[1])) continue;
    const auto bytes = number(words[0]), us = number(words[5]);
    if (!bytes || !us || !(*us > 0))
      throw Error(ErrorCode::bad_input, {.file = name, .line = line_number}, "this is no line of results of nccl-tests",
                  "size, count, type, redop, root, time in microseconds, and more");
    if (*bytes > 0) series.points.push_back({*bytes, *us * 1e-6});
  }
  return whole_series(std::move(series), hosts.size(), name);
}

}  // namespace orrery::collective
