#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "orrery/base/error.hpp"
#include "orrery/explore/expression.hpp"

namespace orrery::explore {

/// One thing that a study varies.
struct Parameter {
  std::string name;
  std::string key;                       ///< of CONFIG.yaml; empty: a name for expressions only
  std::vector<std::string> values;       ///< as the configuration has them
  std::optional<Expression> when;        ///< it takes its values where this holds
  std::optional<std::string> otherwise;  ///< its value elsewhere; none: the key stays as it is
  Place place;
};

/// A key whose value follows from parameters.
struct Derived {
  std::string name;
  std::string key;  ///< empty: a name for expressions only
  Expression value;
};

struct Objective {
  std::string metric;
  bool is_maximised = false;
};

/// Which legal configurations are simulated.
enum class Strategy : std::uint8_t {
  grid,     ///< all
  bounded,  ///< those whose bounds do not rule them out
};
/// Returns "grid" or "bounded".
std::string_view name(Strategy strategy);

/// What `orrery explore` searches (docs/exploration.md).
struct Study {
  std::string text;                   ///< of STUDY.yaml, verbatim
  std::filesystem::path base;         ///< CONFIG.yaml
  std::string cost;                   ///< prices: a file or a preset; empty: those of the base
  std::vector<Parameter> parameters;  ///< the last one changes fastest
  std::vector<Derived> derived;
  std::vector<Expression> constraints;
  std::vector<Objective> objectives;
  std::uint32_t keep = 20;  ///< of the best trials, with one objective
  Strategy strategy = Strategy::grid;
  bool fold = true;
  bool sensitivity = true;  ///< find what the best trial depends on
};

/// The metrics of a trial, and the values of a trial that is done.
struct MetricInfo {
  std::string_view name, units, description;
  bool needs_prices = false;  ///< it follows from `cost`
};
/// Returns all metrics that constraints and objectives may name.
const std::vector<MetricInfo>& metrics();
bool is_metric(std::string_view name);
/// Returns whether a metric follows from prices.
bool needs_prices(std::string_view metric);

/// Checks the names of expressions and objectives: each is a parameter, a derived key before it, `npus` or, in
/// constraints and objectives, a metric. Throws Error (bad_input) with the nearest name.
void validate(const Study& study);

}  // namespace orrery::explore
