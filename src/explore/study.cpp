#include "orrery/explore/study.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>

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

/// Throws if an expression uses a name that has no value where it is evaluated.
void require_known(const Expression& expression, const std::set<std::string, std::less<>>& known, bool takes_metrics) {
  for (const std::string& name : expression.names()) {
    if (known.contains(name)) continue;
    if (takes_metrics && is_metric(name)) continue;
    std::string names;
    for (const std::string& one : known) names += fmt::format("{}{}", names.empty() ? "" : ", ", cited(one));
    throw Error(ErrorCode::bad_input, expression.place(),
                fmt::format("'{}' names '{}'", cited(expression.text()), cited(name)),
                is_metric(name) ? "no metric: it has no value before the simulation"
                                : fmt::format("{}{}", names, takes_metrics ? ", or a metric" : ""));
  }
}

/// Returns the names that are known, and those of derived values that follow from them.
std::set<std::string, std::less<>> with_derived(std::set<std::string, std::less<>> known, const Study& study) {
  for (const Derived& derived : study.derived)
    if (std::ranges::all_of(derived.value.names(), [&](const std::string& name) { return known.contains(name); }))
      known.insert(derived.name);
  return known;
}

}  // namespace

std::string_view name(Strategy strategy) { return strategy == Strategy::grid ? "grid" : "bounded"; }

const std::vector<MetricInfo>& metrics() {
  static const std::vector<MetricInfo> all{
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
  };
  return all;
}

bool is_metric(std::string_view name) {
  return std::ranges::find(metrics(), name, &MetricInfo::name) != metrics().end();
}

bool needs_prices(std::string_view metric) {
  const auto found = std::ranges::find(metrics(), metric, &MetricInfo::name);
  return found != metrics().end() && found->needs_prices;
}

void validate(const Study& study) {
  std::set<std::string, std::less<>> known{"npus"}, own;
  const auto add = [&](const std::string& name, const Place& place) {
    if (!is_name(name) || is_metric(name) || !own.insert(name).second)
      throw Error(ErrorCode::bad_input, place, fmt::format("the name '{}'", cited(name)),
                  "letters, digits and underscores, no metric and no word of expressions, each name once");
    known.insert(name);
  };
  for (const Parameter& parameter : study.parameters) {
    if (parameter.when) require_known(*parameter.when, with_derived(known, study), false);
    add(parameter.name, parameter.place);
  }
  for (const Derived& derived : study.derived) {
    require_known(derived.value, known, false);
    add(derived.name, derived.value.place());
  }
  for (const Expression& constraint : study.constraints) require_known(constraint, known, true);
}

}  // namespace orrery::explore
