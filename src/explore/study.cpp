#include "orrery/explore/study.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <set>

#include "orrery/base/suggestion.hpp"

namespace orrery::explore {
namespace {

/// Says whether a text can stand in an expression as a name.
bool is_name(std::string_view text) {
  const auto is_letter = [](char c) { return c == '_' || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); };
  if (text.empty() || !is_letter(text.front())) return false;
  for (const std::string_view word : {"and", "or", "not", "true", "false"})
    if (text == word) return false;
  return std::ranges::all_of(text, [&](char c) { return is_letter(c) || (c >= '0' && c <= '9'); });
}

/// Returns the key of the study that may change another key, because it is a section or a file that holds it.
std::optional<std::string> holder_of(std::string_view key, const Study& study) {
  const auto holds = [&](std::string_view other) {
    return key.starts_with(fmt::format("{}.", other)) || other == "stack" ||
           (other.ends_with(".base") && key.starts_with(other.substr(0, other.size() - 4)));
  };
  for (const Parameter& parameter : study.parameters)
    if (holds(parameter.key)) return parameter.key;
  for (const Derived& derived : study.derived)
    if (holds(derived.key)) return derived.key;
  return {};
}

/// Throws if a key in back quotes may change with a parameter that holds it.
void require_steady(const Expression& expression, const std::string& key, const Study& study) {
  if (const auto holder = holder_of(key, study))
    throw Error(ErrorCode::bad_input, expression.place(),
                fmt::format("'{}' names the key `{}`, which changes with `{}`", cited(expression.text()), cited(key),
                            cited(*holder)),
                "a key that the study sets itself or leaves as it is", "Give its values as a parameter.");
}

/// Throws if an expression uses a name that has no value where it is evaluated.
void require_known(const Expression& expression, const std::set<std::string, std::less<>>& known, bool takes_metrics,
                   const Study& study) {
  for (const std::string& name : expression.names()) {
    if (known.contains(name)) continue;
    if (takes_metrics && is_metric(name)) continue;
    if (is_key(name)) {
      require_steady(expression, name, study);
      continue;
    }
    std::string names;
    std::vector<std::string_view> candidates;
    for (const std::string& one : known) {
      names += fmt::format("{}{}", names.empty() ? "" : ", ", cited(one));
      candidates.push_back(one);
    }
    if (takes_metrics)
      for (const MetricInfo& metric : metrics()) candidates.push_back(metric.name);
    const std::string_view similar = nearest(name, candidates);
    throw Error(ErrorCode::bad_input, expression.place(),
                fmt::format("'{}' names '{}'", cited(expression.text()), cited(name)),
                is_metric(name) ? "no metric: it has no value before the simulation"
                                : fmt::format("{}{}", names, takes_metrics ? ", or a metric" : ""),
                is_metric(name) || similar.empty() ? "" : fmt::format("Did you mean '{}'?", cited(similar)));
  }
}

/// Returns the names that are known, and those of derived values that follow from them.
std::set<std::string, std::less<>> with_derived(std::set<std::string, std::less<>> known, const Study& study) {
  for (const Derived& derived : study.derived)
    if (std::ranges::all_of(derived.value.names(),
                            [&](const std::string& name) { return known.contains(name) || is_key(name); }))
      known.insert(derived.name);
  return known;
}

/// Refuses a key that two parameters or derived values set in the same configuration. Parameters that have it in some
/// configurations only may share it.
void require_one_setter(const Study& study) {
  struct Setter {
    std::string name;
    bool is_conditional = false;
  };
  std::map<std::string, Setter> setters;  // by keys
  const auto add = [&](const std::string& key, const Setter& setter, const Place& place) {
    if (key.empty()) return;
    const auto [other, is_new] = setters.try_emplace(key, setter);
    if (!is_new && !(setter.is_conditional && other->second.is_conditional))
      throw Error(ErrorCode::bad_input, place,
                  fmt::format("'{}' sets the key {}, which '{}' sets too", cited(setter.name), cited(key),
                              cited(other->second.name)),
                  "one that sets it, or parameters with a `when` each and no `else`");
  };
  for (const Parameter& parameter : study.parameters)
    add(parameter.key, {parameter.name, parameter.when && !parameter.otherwise}, parameter.place);
  for (const Derived& derived : study.derived) add(derived.key, {derived.name}, derived.value.place());
}

/// Refuses a value that a parameter has twice.
void require_different_values(const Study& study) {
  for (const Parameter& parameter : study.parameters) {
    std::set<std::string_view> known;
    for (const std::string& value : parameter.values)
      if (!known.insert(value).second)
        throw Error(ErrorCode::bad_input, parameter.place,
                    fmt::format("'{}' has the value {} twice", cited(parameter.name), cited(value)), "each value once");
  }
}

}  // namespace

std::string_view name(Strategy strategy) {
  constexpr std::array<std::string_view, 5> names{"grid", "bounded", "random", "latin-hypercube", "sobol"};
  return names[static_cast<std::size_t>(strategy)];
}

bool draws_samples(Strategy strategy) { return strategy != Strategy::grid && strategy != Strategy::bounded; }

std::vector<Caveat> default_caveats(const Study& study) {
  Caveat sharding{
      Expression::parse("`workload.parallel.zero` == 3 and `workload.parallel.dp` * `workload.parallel.cp` > 512",
                        {.file = "the default caveats"}),
      "ZeRO 3 over more than 512 NPUs: no measured step that is predicted has so many", true};
  const auto& keys = sharding.when.names();
  if (std::ranges::any_of(keys, [&](const std::string& key) { return holder_of(key, study).has_value(); })) return {};
  return {std::move(sharding)};
}

namespace {

constexpr MetricInfo metric_table[] = {
    {"step_time", "s", "time of a step"},
    {"tokens_per_s", "1/s", "tokens of all replicas in a second"},
    {"samples_per_s", "1/s", "samples of all replicas in a second"},
    {"mfu", "1", "model FLOPs utilisation"},
    {"hfu", "1", "hardware FLOPs utilisation"},
    {"compute", "1", "share of the NPUs' time in which they compute"},
    {"exposed_communication", "1", "share of the NPUs' time in which they only communicate"},
    {"idle", "1", "share of the NPUs' time in which they do nothing"},
    {"bubble", "1", "share of the NPUs' time that they wait for the pipeline"},
    {"peak_memory", "byte", "largest use of the local memory of an NPU"},
    {"capex", "USD", "price of the system", true},
    {"power", "W", "power of the system, the mean over the step", true},
    {"energy_per_step", "J", "energy of a step", true},
    {"usd_per_step", "USD", "price of a step", true},
    {"tokens_per_usd", "1/USD", "tokens for a USD", true},
    {"tokens_per_j", "1/J", "tokens for a joule", true},
    {"ettr", "1", "effective training time ratio of the campaign", false, true},
    {"goodput", "1", "useful over allocated host time of the campaign", false, true},
    {"effective_tokens_per_s", "1/s", "tokens of the campaign in a second of its wall time", false, true},
    {"lost_npu_hours", "1", "NPU-hours of the campaign that were not useful", false, true},
    {"campaign_time", "s", "wall time of the campaign", false, true},
    {"campaign_cost", "USD", "price of the campaign, standbys included", true, true},
    {"campaign_energy", "J", "energy of the campaign, standbys included", true, true},
    {"job_wait", "s", "time from arrival to first start of the jobs of a cluster, mean", false, true},
    {"job_wait_p95", "s", "time from arrival to first start, quantile of 95 %", false, true},
    {"jct", "s", "time from arrival to end of the jobs of a cluster, mean", false, true},
    {"jct_p95", "s", "time from arrival to end, quantile of 95 %", false, true},
    {"job_slowdown", "1", "time from the first start of jobs over that alone", false, true},
    {"cluster_utilisation", "1", "NPU-time of jobs over that of the cluster", false, true},
    {"cluster_fragmentation", "1", "free NPU-time while the first of the queue had enough NPUs but no place", false,
     true},
    {"cluster_makespan", "s", "time from the first arrival to the last end", false, true},
    {"ttft_mean", "s", "time to the first token: mean", false, false, true},
    {"ttft_p50", "s", "time to the first token: median", false, false, true},
    {"ttft_p90", "s", "time to the first token: 90th percentile", false, false, true},
    {"ttft_p99", "s", "time to the first token: 99th percentile", false, false, true},
    {"tpot_mean", "s", "time per output token: mean", false, false, true},
    {"tpot_p50", "s", "time per output token: median", false, false, true},
    {"tpot_p90", "s", "time per output token: 90th percentile", false, false, true},
    {"tpot_p99", "s", "time per output token: 99th percentile", false, false, true},
    {"itl_mean", "s", "time between two tokens: mean", false, false, true},
    {"itl_p50", "s", "time between two tokens: median", false, false, true},
    {"itl_p90", "s", "time between two tokens: 90th percentile", false, false, true},
    {"itl_p99", "s", "time between two tokens: 99th percentile", false, false, true},
    {"latency_mean", "s", "time from arrival to the last token: mean", false, false, true},
    {"latency_p50", "s", "time from arrival to the last token: median", false, false, true},
    {"latency_p90", "s", "time from arrival to the last token: 90th percentile", false, false, true},
    {"latency_p99", "s", "time from arrival to the last token: 99th percentile", false, false, true},
    {"requests_per_s", "1/s", "requests that are served in a second", false, false, true},
    {"output_tokens_per_s", "1/s", "output tokens of all requests in a second", false, false, true},
    {"output_tokens_per_s_per_npu", "1/s", "output tokens of an NPU in a second", false, false, true},
    {"slo_attainment", "1", "share of requests that meet the SLO", false, false, true},
    {"slo_goodput", "1/s", "requests in a second that meet the SLO", false, false, true},
    {"slo_goodput_per_npu", "1/s", "requests of an NPU in a second that meet the SLO", false, false, true},
    {"kv_use", "1", "share of KV blocks in use, the mean over time", false, false, true},
    {"prefix_hit_share", "1", "share of the prompts' tokens that prefix caches have", false, false, true},
    {"preemptions", "1", "requests that gave up their blocks", false, false, true},
    {"max_rate", "1/s", "highest rate of requests at which enough of them meet the SLO", false, false, true},
    {"max_rate_per_npu", "1/s", "highest rate of requests for each NPU", false, false, true},
};

}  // namespace

const std::vector<MetricInfo>& metrics() {
  static const std::vector<MetricInfo> all(std::begin(metric_table), std::end(metric_table));
  return all;
}

bool is_metric(std::string_view name) {
  return is_path(name) || std::ranges::find(metrics(), name, &MetricInfo::name) != metrics().end();
}

bool is_path(std::string_view name) { return name.starts_with("/metrics/"); }

bool is_key(std::string_view name) { return !name.starts_with('/') && name.find('.') != std::string_view::npos; }

bool needs_prices(std::string_view metric) {
  const auto found = std::ranges::find(metrics(), metric, &MetricInfo::name);
  return found != metrics().end() && found->needs_prices;
}

std::vector<const Expression*> expressions_of(const Study& study) {
  std::vector<const Expression*> all;
  for (const Parameter& parameter : study.parameters)
    if (parameter.when) all.push_back(&*parameter.when);
  for (const Derived& derived : study.derived) all.push_back(&derived.value);
  for (const Expression& constraint : study.constraints) all.push_back(&constraint);
  for (const Caveat& caveat : study.caveats) all.push_back(&caveat.when);
  return all;
}

std::vector<std::string> keys_of_base(const Study& study) {
  const auto is_set = [&](const std::string& key) {
    return std::ranges::find(study.derived, key, &Derived::key) != study.derived.end() ||
           std::ranges::any_of(study.parameters, [&](const Parameter& parameter) {
             return parameter.key == key && (!parameter.when || parameter.otherwise);
           });
  };
  std::set<std::string> keys;
  for (const Expression* const expression : expressions_of(study))
    for (const std::string& name : expression->names())
      if (is_key(name) && !is_set(name)) keys.insert(name);
  return {keys.begin(), keys.end()};
}

std::vector<std::string> paths_of(const Study& study) {
  std::set<std::string> paths;
  for (const Expression* const expression : expressions_of(study))
    for (const std::string& name : expression->names())
      if (is_path(name)) paths.insert(name);
  for (const Objective& objective : study.objectives)
    if (is_path(objective.metric)) paths.insert(objective.metric);
  return {paths.begin(), paths.end()};
}

void validate(const Study& study) {
  require_one_setter(study);
  require_different_values(study);
  std::set<std::string, std::less<>> known{"npus"}, own;
  const auto add = [&](const std::string& name, const std::string& key, const Place& place) {
    if (!is_name(name) || is_metric(name) || !own.insert(name).second)
      throw Error(ErrorCode::bad_input, place, fmt::format("the name '{}'", cited(name)),
                  "letters, digits and underscores, no metric and no word of expressions, each name once");
    known.insert(name);
    if (is_key(key)) known.insert(key);
  };
  for (const Parameter& parameter : study.parameters) {
    if (parameter.interval && !draws_samples(study.strategy))
      throw Error(ErrorCode::bad_input, parameter.place,
                  fmt::format("all numbers of a range, and the strategy {}", name(study.strategy)),
                  "factor, step or steps in the range, or strategy: {kind: sobol}, which draws samples");
    if (parameter.when) require_known(*parameter.when, with_derived(known, study), false, study);
    add(parameter.name, parameter.key, parameter.place);
  }
  for (const Derived& derived : study.derived) {
    require_known(derived.value, known, false, study);
    add(derived.name, derived.key, derived.value.place());
  }
  for (const Expression& constraint : study.constraints) require_known(constraint, known, true, study);
  for (const Caveat& caveat : study.caveats)
    if (!caveat.is_default) require_known(caveat.when, known, true, study);
}

}  // namespace orrery::explore
