#include <fmt/format.h>

#include <cctype>
#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>

#include "exact_time.hpp"
#include "orrery/base/text.hpp"
#include "orrery/serving/request_source.hpp"
#include "request_lines.hpp"

namespace orrery::serving {
namespace {

using nlohmann::json;

json parse_line(const RequestLines& lines) {
  json value = json::parse(lines.line(), nullptr, false);
  if (!value.is_object())
    lines.fail(fmt::format("'{}' is no JSON object", cited(lines.line(), 40)), "one for each request");
  return value;
}

/// Returns a whole number of an object.
std::uint64_t count_of(const json& object, const char* name, const RequestLines& lines) {
  const auto found = object.find(name);
  if (found == object.end()) lines.fail(fmt::format("there is no '{}'", name), "a whole number >= 0");
  if (found->is_number_unsigned()) return found->get<std::uint64_t>();
  if (found->is_number_float() && found->get<double>() >= 0 && found->get<double>() < 9e18)
    return static_cast<std::uint64_t>(std::llround(found->get<double>()));
  lines.fail(fmt::format("'{}' is {}", name, cited(found->dump())), "a whole number >= 0");
}

constexpr std::int64_t ps_of_ns = 1000;

Time time_of(const json& object, const char* name, const RequestLines& lines) {
  const std::uint64_t ns = count_of(object, name, lines);
  const Time time = Time::from_ps(ps_of_ns) * static_cast<std::int64_t>(ns);
  if (time == Time::max()) lines.fail(fmt::format("'{}' is {} ns", name, ns), "a time before 106 days");
  return time;
}

void add_token_ids(const json& object, const RequestLines& lines, RequestBuilder& builder) {
  const auto found = object.find("input_tok_ids");
  if (found == object.end() || found->is_null()) return;
  const bool is_list =
      found->is_array() && std::ranges::all_of(*found, [](const json& i) { return i.is_number_integer(); });
  if (!is_list) lines.fail("'input_tok_ids' is no list of whole numbers", "the tokens of the prompt");
  const std::uint64_t prompt = builder.requests().list.back().prompt;
  if (found->size() != prompt)
    lines.fail(fmt::format("input_tok_ids has {} tokens for a prompt of {}", found->size(), prompt), "one for each");
  builder.add_tokens(found->get<std::vector<std::int64_t>>());
}

/// A session: each call arrives so long after the one before has ended.
void read_session(const json& object, std::int64_t session, const RequestLines& lines, RequestBuilder& builder) {
  const json& calls = object["sub_requests"];
  if (!calls.is_array() || calls.empty()) lines.fail("'sub_requests' is no list of calls", "one call or more");
  Time think;
  for (std::size_t i = 0; i < calls.size(); ++i) {
    const json& call = calls[i];
    if (!call.is_object()) lines.fail(fmt::format("call {} is no JSON object", i), "one for each call");
    const std::uint64_t prompt = count_of(call, "input_toks", lines), output = count_of(call, "output_toks", lines);
    const auto last = static_cast<std::uint32_t>(builder.requests().list.size());
    Request& request = i == 0 ? builder.add(lines, time_of(object, "arrival_time_ns", lines), prompt, output)
                              : builder.add_after(lines, last - 1, think, prompt, output);
    request.session = session;
    add_token_ids(call, lines, builder);
    think = call.contains("tool_duration_ns") ? time_of(call, "tool_duration_ns", lines) : Time::zero();
  }
}

void read_llmservingsim(RequestLines& lines, RequestBuilder& builder) {
  builder.requests().tokens_per_id = builder.block();
  std::int64_t sessions = 0;
  while (lines.next()) {
    const json object = parse_line(lines);
    if (object.contains("sub_requests")) {
      read_session(object, sessions++, lines, builder);
      continue;
    }
    builder.add(lines, time_of(object, "arrival_time_ns", lines), count_of(object, "input_toks", lines),
                count_of(object, "output_toks", lines));
    add_token_ids(object, lines, builder);
  }
}

void read_mooncake(RequestLines& lines, RequestBuilder& builder) {
  constexpr std::uint32_t unit = 512;
  builder.requests().tokens_per_id = unit;
  while (lines.next()) {
    const json object = parse_line(lines);
    const auto stamp = object.find("timestamp");
    if (stamp == object.end() || !stamp->is_number() || stamp->get<double>() < 0 || stamp->get<double>() > 9e9)
      lines.fail("there is no 'timestamp'", "milliseconds >= 0");
    const Time arrival = Time::from_ps(std::llround(stamp->get<double>() * 1e3) * ps_per_us);
    const std::uint64_t prompt = count_of(object, "input_length", lines);
    builder.add(lines, arrival, prompt, count_of(object, "output_length", lines));
    const auto ids = object.find("hash_ids");
    if (ids == object.end()) continue;
    const std::uint64_t expected = (prompt + unit - 1) / unit;
    if (!ids->is_array() || ids->size() != expected)
      lines.fail(fmt::format("hash_ids has {} ids for {} tokens, {} {} expected", ids->size(), prompt, expected,
                             expected == 1 ? "is" : "are"));
    for (const json& id : *ids) {
      if (!id.is_number_integer()) lines.fail("hash_ids holds what is no whole number", "ids of 512 tokens");
      builder.add_id(builder.intern(id.dump()));
    }
  }
}

/// Returns a date and a time of day as ps since some day. Digits of a second beyond the twelfth are ignored.
std::optional<__int128> instant_of(std::string_view text) {
  const auto digits = [&](std::size_t first, std::size_t count) -> std::int64_t {
    std::int64_t value = 0;
    const char* const begin = text.data() + first;
    if (first + count > text.size()) return -1;
    const auto [end, error] = std::from_chars(begin, begin + count, value);
    return error == std::errc() && end == begin + count ? value : -1;
  };
  if (text.size() < 19 || text[4] != '-' || text[7] != '-' || (text[10] != ' ' && text[10] != 'T') || text[13] != ':' ||
      text[16] != ':')
    return {};
  std::int64_t year = digits(0, 4);
  const std::int64_t month = digits(5, 2), day = digits(8, 2), hour = digits(11, 2), minute = digits(14, 2),
                     second = digits(17, 2);
  if (year < 0 || month < 1 || month > 12 || day < 1 || day > 31 || hour < 0 || minute < 0 || second < 0) return {};
  // Days from a civil date: years begin in March.
  year -= month <= 2 ? 1 : 0;
  const std::int64_t days = year * 365 + year / 4 - year / 100 + year / 400 + (153 * ((month + 9) % 12) + 2) / 5 + day;
  __int128 ps = ((static_cast<__int128>(days) * 24 + hour) * 60 + minute) * 60 + second;
  ps *= 1'000'000'000'000;
  std::int64_t unit = 100'000'000'000;
  std::size_t i = 19;
  if (i < text.size() && text[i] == '.')
    for (++i; i < text.size() && std::isdigit(static_cast<unsigned char>(text[i])) != 0; ++i, unit /= 10)
      ps += (text[i] - '0') * unit;
  return ps;
}

void read_azure(RequestLines& lines, RequestBuilder& builder) {
  CsvRows rows(lines);
  const std::size_t stamp = rows.column("TIMESTAMP"), prompt = rows.column("ContextTokens"),
                    output = rows.column("GeneratedTokens");
  std::optional<__int128> first;
  while (rows.next()) {
    const auto instant = instant_of(rows.cell(stamp));
    if (!instant)
      lines.fail(fmt::format("'TIMESTAMP' is '{}'", cited(rows.cell(stamp))), "such as 2023-11-16 18:17:03.9799600");
    if (!first) first = instant;
    const __int128 since = *instant - *first;
    if (since > Time::max().ps() / 2) lines.fail("it is more than 50 days after the first row", "a shorter trace");
    builder.add(lines, Time::from_ps(static_cast<std::int64_t>(since)), rows.count(prompt), rows.count(output));
  }
}

/// Returns a time with its unit.
Time time_of_cell(const RequestLines& lines, std::string_view name, std::string_view text) {
  const auto time = exact_time(text);
  if (!time) lines.fail(fmt::format("'{}' is '{}'", name, cited(text)), "a time with its unit, such as 1.5 ms");
  return *time;
}

void read_hashes(std::string_view text, const RequestLines& lines, RequestBuilder& builder) {
  for (std::size_t first = 0; first < text.size();) {
    const std::size_t end = std::min(text.find(' ', first), text.size());
    if (end > first) builder.add_id(builder.intern(std::string(text.substr(first, end - first))));
    first = end + 1;
  }
  const Request& request = builder.requests().list.back();
  const std::uint32_t expected = request.prompt / builder.block();
  if (request.num_ids > 0 && request.num_ids < expected)
    lines.fail(
        fmt::format("'hashes' has {} ids for {} tokens, {} are expected", request.num_ids, request.prompt, expected));
}

void read_orrery(RequestLines& lines, RequestBuilder& builder) {
  builder.requests().tokens_per_id = builder.block();
  CsvRows rows(lines);
  rows.require_known({"arrival", "prompt", "output", "session", "after", "think", "hashes"});
  const std::size_t arrival = rows.column("arrival"), prompt = rows.column("prompt"), output = rows.column("output");
  while (rows.next()) {
    const std::uint64_t asked = rows.count(prompt), made = rows.count(output);
    const std::string_view think = rows.cell("think");
    Request* request = nullptr;
    if (!rows.cell("after").empty()) {
      const std::uint64_t after = rows.count(rows.column("after"));
      if (after >= builder.requests().list.size())
        lines.fail(fmt::format("'after' is {}", after), "the number of a row above, from 0 on");
      request = &builder.add_after(lines, static_cast<std::uint32_t>(after),
                                   think.empty() ? Time::zero() : time_of_cell(lines, "think", think), asked, made);
    } else {
      request = &builder.add(lines, time_of_cell(lines, "arrival", rows.cell(arrival)), asked, made);
    }
    if (!rows.cell("session").empty()) request->session = static_cast<std::int64_t>(rows.count(rows.column("session")));
    read_hashes(rows.cell("hashes"), lines, builder);
  }
}

constexpr RequestFormat llmservingsim{.name = "llmservingsim",
                                      .help = "JSON Lines of LLMServingSim, also with sessions",
                                      .recognises =
                                          [](std::string_view line) {
                                            return line.starts_with('{') &&
                                                   (line.find("\"input_toks\"") != std::string_view::npos ||
                                                    line.find("\"sub_requests\"") != std::string_view::npos);
                                          },
                                      .read = read_llmservingsim};
constexpr RequestFormat azure{
    .name = "azure",
    .help = "CSV of Azure's traces: TIMESTAMP,ContextTokens,GeneratedTokens",
    .recognises = [](std::string_view line) { return line.find("ContextTokens") != std::string_view::npos; },
    .read = read_azure};
constexpr RequestFormat mooncake{.name = "mooncake",
                                 .help = "JSON Lines of Mooncake, with ids of 512 tokens",
                                 .recognises =
                                     [](std::string_view line) {
                                       return line.starts_with('{') &&
                                              line.find("\"input_length\"") != std::string_view::npos;
                                     },
                                 .read = read_mooncake};
constexpr RequestFormat own{.name = "orrery",
                            .help = "CSV: arrival,prompt,output, and perhaps session, after, think, hashes",
                            .recognises = [](std::string_view line) { return line.starts_with("arrival"); },
                            .read = read_orrery};

}  // namespace

std::span<const RequestFormat* const> RequestFormat::registry() {
  static constexpr const RequestFormat* all[] = {&llmservingsim, &azure, &mooncake, &own};
  return all;
}

}  // namespace orrery::serving
