#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cmath>
#include <optional>

#include "orrery/base/text.hpp"
#include "orrery/cluster/arrivals.hpp"

namespace orrery::cluster {
namespace {

/// Returns the cells of a line of CSV. A cell in quotes may hold commas, and quotes that are doubled (RFC 4180).
std::vector<std::string> cells_of(std::string_view line) {
  std::vector<std::string> cells;
  while (true) {
    std::string cell;
    const auto begin = line.find_first_not_of(" \t");
    if (begin != std::string_view::npos && line[begin] == '"') {
      line.remove_prefix(begin + 1);
      while (true) {
        const auto quote = line.find('"');
        cell += line.substr(0, quote);
        line.remove_prefix(quote == std::string_view::npos ? line.size() : quote + 1);
        if (!line.starts_with('"')) break;
        cell += '"';
        line.remove_prefix(1);
      }
    }
    const auto comma = line.find(',');
    if (cell.empty()) cell = trimmed(line.substr(0, comma), " \t\r");
    cells.push_back(std::move(cell));
    if (comma == std::string_view::npos) return cells;
    line.remove_prefix(comma + 1);
  }
}

std::optional<double> number_in(std::string_view text) {
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size() || !std::isfinite(number)) return {};
  return number;
}

/// Returns the seconds by which a time zone is ahead of UTC: of "", "Z", "+08", "+0800" and "+08:00".
std::optional<double> zone_in(std::string_view text) {
  text = trimmed(text, " ");
  if (text.empty() || text == "Z" || text == "UTC") return 0;
  if (text[0] != '+' && text[0] != '-') return {};
  std::string digits;
  for (const char c : text.substr(1))
    if (c != ':') digits += c;
  if (digits.size() != 2 && digits.size() != 4) return {};
  const auto hours = number_in(digits.substr(0, 2)), minutes = number_in(digits.size() == 4 ? digits.substr(2) : "0");
  if (!hours || !minutes) return {};
  return (text[0] == '-' ? -1 : 1) * (*hours * 3600 + *minutes * 60);
}

/// Returns seconds since 1970 of "2023-03-01 12:00:00", perhaps with a T between them, and with a fraction of a second
/// and a time zone after them. Without a zone it is UTC.
std::optional<double> date_in(std::string_view text) {
  const auto part = [&](std::size_t at, std::size_t length) { return number_in(text.substr(at, length)); };
  if (text.size() < 19 || text[4] != '-' || text[7] != '-' || text[13] != ':' || text[16] != ':') return {};
  const auto end = std::min(text.find_first_not_of("0123456789.", 17), text.size());
  const auto year = part(0, 4), month = part(5, 2), day = part(8, 2), hour = part(11, 2), minute = part(14, 2),
             second = part(17, end - 17), zone = zone_in(text.substr(end));
  if (!year || !month || !day || !hour || !minute || !second || !zone) return {};
  const std::chrono::year_month_day date{std::chrono::year(static_cast<int>(*year)),
                                         std::chrono::month(static_cast<unsigned>(*month)),
                                         std::chrono::day(static_cast<unsigned>(*day))};
  if (!date.ok()) return {};
  const auto days = std::chrono::sys_days(date).time_since_epoch().count();
  return static_cast<double>(days) * 86'400 + *hour * 3600 + *minute * 60 + *second - *zone;
}

/// Reads the lines of a trace.
class TraceReader {
 public:
  TraceReader(const std::string& file, const TraceColumns& columns) : file_(file), columns_(columns) {}

  Trace read(std::string_view text) {
    while (!text.empty()) {
      const auto end = text.find('\n');
      const std::string_view line = trimmed(text.substr(0, end), " \t\r");
      text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
      ++line_;
      if (line.empty() || line.starts_with('#')) continue;
      if (columns_.are_shapes)
        take_shape(cells_of(line));
      else if (header_.empty())
        take_header(cells_of(line));
      else
        take_job(cells_of(line));
    }
    from_zero();
    return std::move(trace_);
  }

 private:
  [[noreturn]] void refuse(std::string_view found, std::string_view expected = {}) const {
    throw Error(ErrorCode::bad_input, {.file = file_, .line = line_}, found, expected);
  }

  void take_header(const std::vector<std::string>& cells) {
    header_ = cells;
    for (const std::string* const name : {&columns_.arrival, &columns_.npus, &columns_.length})
      if (std::ranges::find(header_, *name) == header_.end()) {
        std::string all;
        for (const std::string& column : header_) all += (all.empty() ? "" : ", ") + cited(column);
        refuse(fmt::format("no column {}; columns are {}", *name, all));
      }
  }

  std::string_view cell(const std::vector<std::string>& cells, const std::string& name) const {
    const auto at = static_cast<std::size_t>(std::ranges::find(header_, name) - header_.begin());
    return at < cells.size() ? std::string_view(cells[at]) : std::string_view();
  }

  double number(const std::vector<std::string>& cells, const std::string& name) const {
    const auto found = number_in(cell(cells, name));
    if (!found) refuse(fmt::format("{}: found '{}'", name, cited(cell(cells, name))), "a number");
    return *found;
  }

  std::uint32_t class_of(std::string_view name) {
    const auto found = std::ranges::find(trace_.classes, name);
    if (found == trace_.classes.end()) {
      trace_.classes.emplace_back(name);
      return static_cast<std::uint32_t>(trace_.classes.size() - 1);
    }
    return static_cast<std::uint32_t>(found - trace_.classes.begin());
  }

  void take_job(const std::vector<std::string>& cells) {
    const std::string_view at = cell(cells, columns_.arrival);
    auto arrival = number_in(at);
    if (!arrival) arrival = date_in(at);
    if (!arrival) refuse(fmt::format("{}: found '{}'", columns_.arrival, cited(at)), "seconds or a date");
    const double npus = number(cells, columns_.npus), length = number(cells, columns_.length);
    if (length < 0) refuse("end before start");
    if (npus < 0 || npus != std::floor(npus) || npus > 1e9)
      refuse(fmt::format("found {} NPUs", npus), "a whole number");
    if (npus == 0 || length == 0) {
      ++trace_.left_out;
      return;
    }
    Job job;
    job.name = cell(cells, columns_.name);
    job.npus = static_cast<std::uint32_t>(npus);
    job.length = job.estimate = std::max<Nanoseconds>(1, campaign::nanoseconds(length));
    job.job_class = class_of(cell(cells, columns_.job_class));
    arrivals_.push_back(*arrival);
    trace_.jobs.push_back(std::move(job));
  }

  void take_shape(const std::vector<std::string>& cells) {
    if (cells.size() < 5) refuse(fmt::format("found {} cells", cells.size()), "name, label and a shape of 3 numbers");
    Job job;
    job.name = cells[0];
    job.job_class = class_of(cells[1]);
    job.npus = 1;
    for (std::size_t i = 0; i < 3; ++i) {
      const auto side = number_in(cells[i + 2]);
      if (!side || *side < 1 || *side > 64 || *side != std::floor(*side))
        refuse(fmt::format("found '{}'", cited(cells[i + 2])), "1 to 64");
      job.shape[i] = static_cast<std::uint32_t>(*side);
      job.npus *= job.shape[i];
    }
    job.length = job.estimate = 3600 * campaign::second;
    arrivals_.push_back(0);
    trace_.jobs.push_back(std::move(job));
  }

  /// Lets the first arrival be time 0.
  void from_zero() {
    if (arrivals_.empty()) refuse("the trace has no jobs");
    const double first = *std::ranges::min_element(arrivals_);
    for (std::size_t i = 0; i < arrivals_.size(); ++i)
      trace_.jobs[i].arrival = campaign::nanoseconds(arrivals_[i] - first);
  }

  const std::string& file_;
  const TraceColumns& columns_;
  std::vector<std::string> header_;
  std::uint64_t line_ = 0;
  std::vector<double> arrivals_;  // [jobs] seconds
  Trace trace_;
};

}  // namespace

TraceColumns columns_of(std::string_view preset, const orrery::Place& place) {
  if (preset == "acme") return {"job_id", "submit_time", "gpu_num", "duration", "type"};
  if (preset == "philly") return {"job_id", "submit_time", "gpu_num", "duration", "vc"};
  if (preset == "helios") return {"job_id", "submit_time", "gpu_num", "duration", "vc"};
  if (preset == "cmu")
    return {.name = "", .arrival = "", .npus = "", .length = "", .job_class = "", .are_shapes = true};
  throw Error(ErrorCode::bad_input, place, fmt::format("found '{}'", cited(preset)), "acme, philly, helios or cmu");
}

Trace read_trace(std::string_view text, const std::string& file, const TraceColumns& columns) {
  return TraceReader(file, columns).read(text);
}

}  // namespace orrery::cluster
