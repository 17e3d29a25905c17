#include "campaign_values.hpp"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <cmath>
#include <string_view>
#include <utility>
#include <vector>

#include "orrery/base/quantity_text.hpp"
#include "orrery/base/text.hpp"
#include "reading.hpp"

namespace orrery::config {
namespace {

using campaign::Nanoseconds;
using campaign::Spread;
using campaign::SpreadKind;
using campaign::Work;

struct LongUnit {
  std::string_view name;
  Nanoseconds ns;
};
constexpr std::array<LongUnit, 7> long_units = {{{"d", campaign::day},
                                                 {"h", 3600 * campaign::second},
                                                 {"min", 60 * campaign::second},
                                                 {"s", campaign::second},
                                                 {"ms", 1'000'000},
                                                 {"us", 1'000},
                                                 {"ns", 1}}};
constexpr std::string_view long_time_expected = "a time with its unit, such as '90 d', '3 h', '20 min' or '30 s'";
constexpr std::string_view rate_expected = "a rate such as '0.2 per 1000 days' or '3 per day'";
constexpr std::string_view spread_expected =
    "a value, or a distribution such as {exponential: 2 h}, {uniform: [1 h, 3 h]}, {weibull: {mean: 2 h, shape: 0.7}} "
    "or {lognormal: {mean: 2 h, median: 1 h}}";
constexpr std::string_view work_expected = "work such as '60 d', '500000 steps' or '2 T tokens'";

[[noreturn]] void refuse_long_value(const Value& value, const std::string& key, std::string_view expected) {
  throw Error(ErrorCode::bad_input, value.place(key), fmt::format("found {}", value.description()), expected);
}

/// Returns the number at the beginning of a text, and takes it away.
std::optional<double> take_number(std::string_view& text) {
  text = trimmed(text);
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || !std::isfinite(number) || number < 0) return {};
  text = trimmed(text.substr(static_cast<std::size_t>(end - text.data())));
  return number;
}

std::optional<double> unit_in_days(std::string_view unit) {
  constexpr std::array<std::pair<std::string_view, double>, 6> units = {{{"second", 1.0 / 86'400},
                                                                         {"minute", 1.0 / 1'440},
                                                                         {"hour", 1.0 / 24},
                                                                         {"day", 1},
                                                                         {"week", 7},
                                                                         {"year", 365.25}}};
  if (unit.ends_with('s')) unit.remove_suffix(1);
  for (const auto& [name, days] : units)
    if (name == unit) return days;
  return {};
}

double plain_number_of(const Value& value, const std::string& key) { return as_number(value, key, "0 or more"); }
double long_seconds_of(const Value& value, const std::string& key) {
  return campaign::seconds(as_long_time(value, key));
}
std::string seconds_text(double number) { return long_time_text(campaign::nanoseconds(number)); }

using ReadNumber = double (*)(const Value&, const std::string&);

double need_number(const Value& mapping, const std::string& key, const char* name, ReadNumber read) {
  const Value* const value = mapping.find(name);
  if (value == nullptr)
    throw Error(ErrorCode::bad_input, mapping.place(fmt::format("{}.{}", key, name)), "the key is missing",
                spread_expected);
  return read(*value, fmt::format("{}.{}", key, name));
}

/// Throws for a key that the distribution does not have.
void require_keys(const Value& mapping, const std::string& key, std::initializer_list<std::string_view> known) {
  for (const auto& entry : mapping.entries)
    if (std::find(known.begin(), known.end(), entry.key) == known.end())
      throw Error(ErrorCode::bad_input, entry.value.place(fmt::format("{}.{}", key, entry.key)), "unknown key",
                  list(std::vector<std::string_view>(known)));
}

Spread range_of(SpreadKind kind, const Value& value, const std::string& key, ReadNumber read) {
  Spread spread{.kind = kind};
  if (value.kind == Value::Kind::sequence && value.items.size() == 2) {
    spread.least = read(value.items[0], key + ".0");
    spread.most = read(value.items[1], key + ".1");
  } else if (value.kind == Value::Kind::mapping) {
    require_keys(value, key, {"least", "most", "shape"});
    spread.least = need_number(value, key, "least", read);
    spread.most = need_number(value, key, "most", read);
    if (kind == SpreadKind::pareto) spread.shape = need_number(value, key, "shape", plain_number_of);
  } else {
    refuse_long_value(value, key, spread_expected);
  }
  if (spread.most < spread.least || (kind == SpreadKind::pareto && spread.least <= 0))
    throw Error(ErrorCode::bad_input, value.place(key), fmt::format("found {} to {}", spread.least, spread.most),
                "bounds in order");
  return spread;
}

Spread lognormal_of(const Value& value, const std::string& key, ReadNumber read) {
  require_keys(value, key, {"mean", "median"});
  const Spread spread{.kind = SpreadKind::lognormal,
                      .mean = need_number(value, key, "mean", read),
                      .median = need_number(value, key, "median", read)};
  if (!(spread.median > 0) || spread.mean < spread.median)
    throw Error(ErrorCode::bad_input, value.place(key),
                fmt::format("found mean {} and median {}", spread.mean, spread.median),
                "a median above 0, and a mean that is not below it");
  return spread;
}

Spread weibull_of(const Value& value, const std::string& key, ReadNumber read) {
  require_keys(value, key, {"mean", "shape"});
  const Spread spread{.kind = SpreadKind::weibull,
                      .mean = need_number(value, key, "mean", read),
                      .shape = need_number(value, key, "shape", plain_number_of)};
  if (spread.shape < 0.1 || spread.shape > 10)
    throw Error(ErrorCode::bad_input, value.place(key + ".shape"), fmt::format("found {}", spread.shape),
                "shape must be from 0.1 to 10");
  return spread;
}

Spread mixture_of(const Value& value, const std::string& key, ReadNumber read) {
  Spread spread{.kind = SpreadKind::mixture};
  double sum = 0;
  for (std::size_t i = 0; i < as_list(value, key, "a list of [share, mean]").size(); ++i) {
    const Value& part = value.items[i];
    const std::string at = fmt::format("{}.{}", key, i);
    if (part.kind != Value::Kind::sequence || part.items.size() != 2) refuse_long_value(part, at, "[share, mean]");
    spread.weights.push_back(plain_number_of(part.items[0], at + ".0"));
    spread.values.push_back(read(part.items[1], at + ".1"));
    sum += spread.weights.back();
  }
  if (std::abs(sum - 1) > 1e-9)
    throw Error(ErrorCode::bad_input, value.place(key), fmt::format("the shares add up to {}", sum), "1");
  return spread;
}

Spread values_of_list(const Value& value, const std::string& key, ReadNumber read) {
  Spread spread{.kind = SpreadKind::values};
  const auto& items = as_list(value, key, "a list of values");
  for (std::size_t i = 0; i < items.size(); ++i) spread.values.push_back(read(items[i], fmt::format("{}.{}", key, i)));
  return spread;
}

}  // namespace

const Words<campaign::Per>& failure_units() {
  static const Words<campaign::Per> words = {{"npu", campaign::Per::npu, "each NPU of an active host"},
                                             {"host", campaign::Per::host, "each active host"},
                                             {"group", campaign::Per::group, "each group that has an active host"},
                                             {"job", campaign::Per::job, "the job as a whole"}};
  return words;
}

const Words<campaign::Symptom>& symptoms() {
  using campaign::Symptom;
  static const Words<Symptom> words = {{"crash", Symptom::crash, "the job ends, and goes back to a checkpoint"},
                                       {"hang", Symptom::hang, "the job stands still until a time-out, then as crash"},
                                       {"silent", Symptom::silent, "results are wrong until somebody finds out"},
                                       {"slow", Symptom::slow, "the job is slower until the straggler is found"},
                                       {"pause", Symptom::pause, "the job is stopped for some time"}};
  return words;
}

const Words<campaign::Exposure>& exposures() {
  static const Words<campaign::Exposure> words = {
      {"allocated", campaign::Exposure::allocated, "in running, checkpoints, restarts and selections"},
      {"running", campaign::Exposure::running, "in running and checkpoints only"}};
  return words;
}

const Words<campaign::Selection>& host_selections() {
  static const Words<campaign::Selection> words = {
      {"first", campaign::Selection::first, "in the order in which hosts came into the pool"},
      {"fewest-failures", campaign::Selection::fewest_failures, "hosts that failed least often come first"}};
  return words;
}

const Words<campaign::TierKind>& checkpoint_tiers() {
  static const Words<campaign::TierKind> words = {{"peer", campaign::TierKind::peer, "in the memory of other hosts"},
                                                  {"remote", campaign::TierKind::remote, "in system.remote-memory"}};
  return words;
}

const Words<campaign::Writers>& checkpoint_writers() {
  static const Words<campaign::Writers> words = {
      {"sharded", campaign::Writers::sharded, "each NPU writes its share"},
      {"first-replica", campaign::Writers::first_replica, "the NPUs of one replica write all"}};
  return words;
}

const Words<bool>& checkpoint_modes() {
  static const Words<bool> words = {{"synchronous", false, "the job stops for the whole write"},
                                    {"asynchronous", true, "the job stops for the copy to host memory"}};
  return words;
}

const Words<bool>& elastic_batches() {
  static const Words<bool> words = {{"constant", false, "fewer replicas take more micro-batches each"},
                                    {"scaled", true, "the batch shrinks with the replicas"}};
  return words;
}

const Words<bool>& awaited_hosts() {
  static const Words<bool> words = {{"hosts", false, "those that it needs"},
                                    {"standbys", true, "those that it needs, and all standbys"}};
  return words;
}

Nanoseconds as_long_time(const Value& value, const std::string& key) {
  if (value.kind != Value::Kind::scalar) refuse_long_value(value, key, long_time_expected);
  std::string_view text = value.text;
  const auto number = take_number(text);
  if (!number) refuse_long_value(value, key, long_time_expected);
  for (const LongUnit& unit : long_units)
    if (unit.name == text) {
      const double exact = *number * static_cast<double>(unit.ns);
      if (exact > static_cast<double>(campaign::longest)) refuse_long_value(value, key, "at most 100 years");
      const double nearest = std::round(exact);
      return static_cast<Nanoseconds>(std::abs(exact - nearest) <= 1e-12 * exact ? nearest : std::ceil(exact));
    }
  refuse_long_value(value, key, long_time_expected);
}

std::string long_time_text(Nanoseconds time) {
  for (const LongUnit& unit : long_units)
    if (time % unit.ns == 0 && (time != 0 || unit.name == "s")) return fmt::format("{} {}", time / unit.ns, unit.name);
  return fmt::format("{} ns", time);
}

double as_rate(const Value& value, const std::string& key) {
  if (value.kind != Value::Kind::scalar) refuse_long_value(value, key, rate_expected);
  std::string_view text = value.text;
  const auto number = take_number(text);
  if (!number || !text.starts_with("per ")) refuse_long_value(value, key, rate_expected);
  text.remove_prefix(4);
  std::string_view unit = text;
  const auto many = take_number(unit);
  const auto days = unit_in_days(trimmed(many ? unit : text));
  if (!days || (many && *many == 0)) refuse_long_value(value, key, rate_expected);
  const double period = many.value_or(1) * *days;
  return period == 1 ? *number : *number / period;
}

Spread as_spread(const Value& value, const std::string& key, ReadNumber read) {
  if (value.kind != Value::Kind::mapping) return Spread::fixed(read(value, key));
  if (value.entries.size() != 1) refuse_long_value(value, key, spread_expected);
  const auto& [name, line, inner] = value.entries.front();
  const std::string at = fmt::format("{}.{}", key, name);
  if (name == "fixed") return Spread::fixed(read(inner, at));
  if (name == "exponential") return {.kind = SpreadKind::exponential, .mean = read(inner, at)};
  if (name == "uniform") return range_of(SpreadKind::uniform, inner, at, read);
  if (name == "pareto") return range_of(SpreadKind::pareto, inner, at, read);
  if (name == "weibull") return weibull_of(inner, at, read);
  if (name == "lognormal") return lognormal_of(inner, at, read);
  if (name == "mixture") return mixture_of(inner, at, read);
  if (name == "values") return values_of_list(inner, at, read);
  throw Error(ErrorCode::bad_input, value.place(at), "unknown distribution",
              "fixed, exponential, uniform, weibull, lognormal, pareto, mixture or values");
}

std::string spread_text(const Spread& spread, std::string (*write)(double number)) {
  std::string items;
  for (std::size_t i = 0; i < spread.values.size(); ++i) {
    items += i > 0 ? ", " : "";
    items += spread.kind == SpreadKind::mixture ? fmt::format("[{}, {}]", spread.weights[i], write(spread.values[i]))
                                                : write(spread.values[i]);
  }
  switch (spread.kind) {
    case SpreadKind::fixed:
      return write(spread.mean);
    case SpreadKind::exponential:
      return fmt::format("{{exponential: {}}}", write(spread.mean));
    case SpreadKind::uniform:
      return fmt::format("{{uniform: [{}, {}]}}", write(spread.least), write(spread.most));
    case SpreadKind::pareto:
      return fmt::format("{{pareto: {{least: {}, most: {}, shape: {}}}}}", write(spread.least), write(spread.most),
                         spread.shape);
    case SpreadKind::weibull:
      return fmt::format("{{weibull: {{mean: {}, shape: {}}}}}", write(spread.mean), spread.shape);
    case SpreadKind::lognormal:
      return fmt::format("{{lognormal: {{mean: {}, median: {}}}}}", write(spread.mean), write(spread.median));
    case SpreadKind::mixture:
      return fmt::format("{{mixture: [{}]}}", items);
    case SpreadKind::values:
      return fmt::format("{{values: [{}]}}", items);
  }
  return {};
}

void require_share_of_one(double share, const Place& place) {
  if (!(share >= 0 && share <= 1)) throw Error(ErrorCode::bad_input, place, fmt::format("found {}", share), "0 to 1");
}

void require_relative_speed(double speed, const Place& place) {
  if (!(speed > 0 && speed <= 1))
    throw Error(ErrorCode::bad_input, place, fmt::format("found {}", speed), "more than 0, 1 at the most");
}

constinit const ValueKind<Nanoseconds> long_time_kind = kind_of<Nanoseconds>(
    [](const Limits&) {
      return TypeInfo{"time", std::string(long_time_expected), "s", "0 s to 100 years"};
    },
    [](const Limits&, const Value& value, const std::string& key, const Reading&) { return as_long_time(value, key); },
    [](const Limits&, Nanoseconds time) {
      return time >= campaign::longest ? std::nullopt : std::optional(long_time_text(time));
    });

constinit const ValueKind<std::optional<Nanoseconds>> optional_time_kind = kind_of<std::optional<Nanoseconds>>(
    [](const Limits&) {
      return TypeInfo{"time", std::string(long_time_expected), "s", "0 s to 100 years"};
    },
    [](const Limits&, const Value& value, const std::string& key, const Reading&) {
      return std::optional(as_long_time(value, key));
    },
    [](const Limits&, const std::optional<Nanoseconds>& time) {
      return time ? std::optional(long_time_text(*time)) : std::nullopt;
    });

constinit const ValueKind<double> rate_kind = kind_of<double>(
    [](const Limits&) {
      return TypeInfo{"rate", std::string(rate_expected), "1/day", "0 or more"};
    },
    [](const Limits&, const Value& value, const std::string& key, const Reading&) { return as_rate(value, key); },
    [](const Limits&, double rate) { return fmt::format("{} per day", rate); });

constinit const ValueKind<Spread> time_spread_kind = kind_of<Spread>(
    [](const Limits&) {
      return TypeInfo{"time or distribution", std::string(spread_expected), "s", "0 s or more"};
    },
    [](const Limits&, const Value& value, const std::string& key, const Reading&) {
      return as_spread(value, key, long_seconds_of);
    },
    [](const Limits&, const Spread& spread) { return spread_text(spread, seconds_text); });

constinit const ValueKind<Work> work_kind = kind_of<Work>(
    [](const Limits&) {
      return TypeInfo{"work", std::string(work_expected), "-", "more than 0"};
    },
    [](const Limits&, const Value& value, const std::string& key, const Reading&) {
      if (value.kind != Value::Kind::scalar) refuse_long_value(value, key, work_expected);
      std::string_view text = value.text;
      const auto number = take_number(text);
      if (!number || *number == 0) refuse_long_value(value, key, work_expected);
      constexpr std::array<std::pair<std::string_view, double>, 5> prefixes = {
          {{"k ", 1e3}, {"M ", 1e6}, {"G ", 1e9}, {"T ", 1e12}, {"", 1}}};
      for (const auto& [prefix, factor] : prefixes)
        if (text.starts_with(prefix)) {
          const std::string_view unit = text.substr(prefix.size());
          if (unit == "steps" || unit == "step") return Work{Work::Unit::steps, std::ceil(*number * factor)};
          if (unit == "tokens") return Work{Work::Unit::tokens, *number * factor};
        }
      return Work{Work::Unit::time, campaign::seconds(as_long_time(value, key))};
    },
    [](const Limits&, const Work& work) -> std::optional<std::string> {
      if (work.amount == 0) return {};
      if (work.unit == Work::Unit::time) return seconds_text(work.amount);
      return fmt::format("{} {}", work.amount, work.unit == Work::Unit::steps ? "steps" : "tokens");
    });

}  // namespace orrery::config
