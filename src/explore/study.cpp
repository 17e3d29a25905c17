#include "orrery/explore/study.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <set>

#include "orrery/base/suggestion.hpp"
#include "orrery/results/metric_registry.hpp"

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
      for (const results::MetricInfo& metric : results::study_metrics()) candidates.push_back(metric.name);
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

bool is_metric(std::string_view name) {
  const results::MetricInfo* const found = results::find_metric(name);
  return is_path(name) || (found != nullptr && found->origin != results::MetricInfo::Origin::bound);
}

bool is_path(std::string_view name) { return name.starts_with("/metrics/"); }

bool is_key(std::string_view name) { return !name.starts_with('/') && name.find('.') != std::string_view::npos; }

bool needs_prices(std::string_view metric) {
  const results::MetricInfo* const found = results::find_metric(metric);
  return found != nullptr && found->needs_prices;
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
