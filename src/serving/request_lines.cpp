#include "request_lines.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>

#include "orrery/base/text.hpp"

namespace orrery::serving {

RequestLines::RequestLines(const std::filesystem::path& path) : path_(path) {
  std::error_code failure;
  if (!std::filesystem::is_regular_file(path, failure))
    throw Error(ErrorCode::bad_input, {.file = path.string()}, "it is no file that can be read", "a file of requests");
  file_.reset(gzopen(path.c_str(), "rb"));
  if (!file_) throw Error(ErrorCode::bad_input, {.file = path.string()}, "it cannot be opened", "a file of requests");
  gzbuffer(file_.get(), 1U << 18U);
}

bool RequestLines::next() {
  if (is_put_back_) {
    is_put_back_ = false;
    return true;
  }
  std::array<char, 65536> piece{};
  do {
    line_.clear();
    for (;;) {
      if (gzgets(file_.get(), piece.data(), static_cast<int>(piece.size())) == nullptr) {
        int code = Z_OK;
        gzerror(file_.get(), &code);
        if (code != Z_OK && code != Z_STREAM_END) fail("it cannot be read: the packed data are damaged or cut off");
        if (line_.empty()) return false;
        break;
      }
      line_ += piece.data();
      if (line_.back() == '\n') break;
    }
    ++number_;
    while (!line_.empty() && (line_.back() == '\n' || line_.back() == '\r')) line_.pop_back();
  } while (trimmed(line_).empty());
  return true;
}

Place RequestLines::place() const {
  Place place{.file = path_.string()};
  if (number_ > 0) place.line = number_;
  return place;
}

void RequestLines::fail(std::string_view found, std::string_view expected, std::string_view hint) const {
  throw Error(ErrorCode::bad_input, place(), found, expected, hint);
}

CsvRows::CsvRows(RequestLines& lines) : lines_(lines) {
  if (!lines_.next()) lines_.fail("the file is empty", "a header and one row for each request");
  split();
  for (std::size_t i = 0; i < cells_.size(); ++i) names_.emplace_back(cell(i));
}

void CsvRows::split() {
  cells_.clear();
  const std::string& line = lines_.line();
  for (std::size_t first = 0; first <= line.size();) {
    const std::size_t end = std::min(line.find(',', first), line.size());
    cells_.emplace_back(first, end - first);
    first = end + 1;
  }
}

bool CsvRows::next() {
  if (!lines_.next()) return false;
  split();
  return true;
}

bool CsvRows::has(std::string_view name) const { return std::ranges::find(names_, name) != names_.end(); }

std::size_t CsvRows::column(std::string_view name) const {
  const auto found = std::ranges::find(names_, name);
  if (found == names_.end())
    lines_.fail(fmt::format("there is no column '{}'", name), fmt::format("it among {}", fmt::join(names_, ", ")));
  return static_cast<std::size_t>(found - names_.begin());
}

std::string_view CsvRows::cell(std::size_t column) const {
  if (column >= cells_.size()) return {};
  return trimmed(std::string_view(lines_.line()).substr(cells_[column].first, cells_[column].second));
}

std::uint64_t CsvRows::count(std::size_t column) const {
  const std::string_view text = cell(column);
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || text.empty())
    lines_.fail(fmt::format("'{}' is '{}'", names_[column], cited(text)), "a whole number >= 0");
  return value;
}

void CsvRows::require_known(const std::vector<std::string_view>& known) const {
  for (const std::string& name : names_)
    if (std::ranges::find(known, name) == known.end())
      lines_.fail(fmt::format("the column '{}' is not known", cited(name)), fmt::format("{}", fmt::join(known, ", ")));
}

Request& RequestBuilder::append(const RequestLines& lines, std::uint64_t prompt, std::uint64_t output) {
  constexpr std::uint64_t most = 1U << 30U;
  if (prompt == 0 || output == 0 || prompt > most || output > most)
    lines.fail(fmt::format("a prompt of {} tokens and an output of {}", prompt, output),
               "1 or more of each, and at most 2^30");
  if (requests_.list.size() >= Request::nobody) lines.fail("there are too many requests", "less than 2^32 - 1");
  Request& request = requests_.list.emplace_back();
  request.prompt = static_cast<std::uint32_t>(prompt);
  request.output = static_cast<std::uint32_t>(output);
  request.first_id = requests_.ids.size();
  return request;
}

Request& RequestBuilder::add(const RequestLines& lines, Time arrival, std::uint64_t prompt, std::uint64_t output) {
  const std::uint64_t line = lines.place().line.value_or(0);
  if (arrival < last_)
    lines.fail(fmt::format("it arrives at {}, before line {} ({})", readable(arrival), line_of_last_, readable(last_)),
               "rows in the order of arrival", "Sort the file.");
  last_ = arrival;
  line_of_last_ = line;
  Request& request = append(lines, prompt, output);
  request.arrival = arrival;
  return request;
}

Request& RequestBuilder::add_after(const RequestLines& lines, std::uint32_t after, Time think, std::uint64_t prompt,
                                   std::uint64_t output) {
  Request& request = append(lines, prompt, output);
  request.after = after;
  request.think = think;
  requests_.is_closed = true;
  return request;
}

void RequestBuilder::add_id(std::uint64_t id) {
  requests_.ids.push_back(id);
  ++requests_.list.back().num_ids;
}

std::uint64_t RequestBuilder::intern(std::string text) {
  return interned_.try_emplace(std::move(text), interned_.size()).first->second;
}

void RequestBuilder::add_tokens(const std::vector<std::int64_t>& tokens) {
  std::uint64_t before = ~std::uint64_t{0};
  for (std::size_t first = 0; first + block_ <= tokens.size(); first += block_) {
    std::string text(sizeof(before) * (block_ + std::size_t{1}), '\0');
    std::memcpy(text.data(), &before, sizeof(before));
    std::memcpy(text.data() + sizeof(before), &tokens[first], sizeof(before) * block_);
    before = intern(std::move(text));
    add_id(before);
  }
}

}  // namespace orrery::serving
