#include "orrery/base/text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <fstream>
#include <system_error>
#include <vector>

namespace orrery {
namespace {

constexpr std::uintmax_t largest_text = 64U << 20U;

}  // namespace

std::string name_for_npu(std::string pattern, std::uint64_t npu) {
  const std::string number = fmt::to_string(npu);
  for (auto at = pattern.find(npu_placeholder); at != std::string::npos; at = pattern.find(npu_placeholder, at))
    pattern.replace(at, npu_placeholder.size(), number);
  return pattern;
}

std::string counted(std::uint64_t count, std::string_view noun, std::string_view plural) {
  if (count == 1) return fmt::format("1 {}", noun);
  return plural.empty() ? fmt::format("{} {}s", count, noun) : fmt::format("{} {}", count, plural);
}

std::string with_prefix(double value) {
  constexpr std::string_view prefixes[] = {"", " k", " M", " G", " T", " P", " E", " Z", " Y"};
  std::size_t at = 0;
  for (; value >= 1000 && at + 1 < std::size(prefixes); ++at) value /= 1000;
  return fmt::format("{:.4g}{}", value, prefixes[at]);
}

std::string size_text(std::uint64_t bytes, std::uint64_t like) {
  const bool is_binary = like > 0 && like % (std::uint64_t{1} << 20U) == 0;
  const std::uint64_t base = is_binary ? 1024 : 1000;
  if (bytes < base) return fmt::format("{} B", bytes);
  constexpr std::string_view binary[] = {"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  constexpr std::string_view decimal[] = {"kB", "MB", "GB", "TB", "PB", "EB"};
  const auto divisor = static_cast<double>(base);
  double value = static_cast<double>(bytes) / divisor;
  std::size_t at = 0;
  for (; value >= divisor && at + 1 < std::size(binary); ++at) value /= divisor;
  return fmt::format("{:.2f} {}", value, is_binary ? binary[at] : decimal[at]);
}

std::string readable(Time time) {
  struct TimeUnit {
    double ps;
    const char* name;
  };
  constexpr std::array<TimeUnit, 4> units{{{1e12, "s"}, {1e9, "ms"}, {1e6, "µs"}, {1e3, "ns"}}};
  const auto ps = static_cast<double>(time.ps());
  if (time == Time::zero()) return "0 s";
  for (const TimeUnit& unit : units)
    if (ps >= unit.ps) return fmt::format("{:.6g} {}", ps / unit.ps, unit.name);
  return fmt::format("{} ps", time.ps());
}

std::string list(std::span<const NpuId> npus) {
  constexpr std::size_t most_listed = 10;
  std::string text;
  for (std::size_t i = 0; i < std::min(npus.size(), most_listed); ++i)
    text += fmt::format("{}{}", i == 0 ? "" : ", ", npus[i].value());
  if (npus.size() > most_listed) text += fmt::format(" and {} more", npus.size() - most_listed);
  return text;
}

std::string_view trimmed(std::string_view text, std::string_view blanks) {
  const auto first = text.find_first_not_of(blanks);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(blanks) - first + 1);
}

std::string as_typed(const std::string& argument) {
  const auto is_plain = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || std::strchr("_@%+=:,./-", c) != nullptr;
  };
  if (!argument.empty() && std::all_of(argument.begin(), argument.end(), is_plain)) return argument;
  std::string quoted = "'";
  for (const char c : argument) quoted += c == '\'' ? std::string("'\"'\"'") : std::string(1, c);
  return quoted + "'";
}

std::string csv_cell(std::string_view text) {
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const bool is_number = error == std::errc() && end == text.data() + text.size();
  // Spreadsheets take a text that begins with one of these for a formula, unless an apostrophe is before it.
  if (!text.empty() && !is_number && std::string_view("=+-@\t\r").find(text.front()) != std::string_view::npos)
    return csv_cell(fmt::format("'{}", text));
  if (text.find_first_of(",\"\n\r") == std::string_view::npos) return std::string(text);
  std::string inner;
  for (const char c : text) inner.append(c == '"' ? 2 : 1, c);
  return fmt::format("\"{}\"", inner);
}

std::string read_text(const std::filesystem::path& path, const Place& named_by) {
  namespace fs = std::filesystem;
  Place place = named_by;
  if (place.file.empty()) place.file = path.string();
  const bool other = place.file != path.string();
  const auto fail = [&](std::string_view why) {
    throw Error(ErrorCode::bad_input, place, other ? fmt::format("{}: {}", path.string(), why) : std::string(why),
                "a text file that can be read");
  };
  std::error_code failure;
  const auto status = fs::status(path, failure);
  if (status.type() == fs::file_type::not_found) fail("there is no such file");
  if (failure) fail(fmt::format("the file cannot be read ({})", failure.message()));
  if (fs::is_directory(status)) fail("this is a directory");
  if (!fs::is_regular_file(status)) fail("this is not a regular file");
  if (fs::file_size(path, failure) > largest_text && !failure) fail("the file is larger than 64 MiB");
  std::ifstream file(path, std::ios::binary);
  if (!file) fail(fmt::format("the file cannot be opened ({})", std::generic_category().message(errno)));
  std::string text;
  std::vector<char> part(std::size_t{1} << 16U);
  do {
    file.read(part.data(), static_cast<std::streamsize>(part.size()));
    text.append(part.data(), static_cast<std::size_t>(file.gcount()));
  } while (file);
  if (file.bad()) fail(fmt::format("the file cannot be read ({})", std::generic_category().message(errno)));
  return text;
}

}  // namespace orrery
