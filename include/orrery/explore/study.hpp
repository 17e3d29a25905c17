#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "orrery/base/error.hpp"
#include "orrery/explore/expression.hpp"

namespace orrery::explore {

/// All numbers from one to another.
struct Interval {
  double from = 0, to = 0;
  std::string unit;     ///< unit of both, with the space before it
  bool is_log = false;  ///< samples are even on a logarithmic scale
};

/// One thing that a study varies.
struct Parameter {
  std::string name;
  std::string key;                       ///< key of CONFIG.yaml; empty: a name for expressions only
  std::vector<std::string> values;       ///< as the configuration has them; empty: those of `interval`
  std::optional<Interval> interval;      ///< for strategies that draw samples
  std::optional<Expression> when;        ///< it takes its values where this holds
  std::optional<std::string> otherwise;  ///< its value elsewhere; none: the key stays as it is
  Place place;
};

/// A key whose value follows from parameters.
struct Derived {
  std::string name;
  std::string key;  ///< empty: a name for expressions only
  Expression value;
  std::string unit = {};  ///< unit in which the key has the value, such as "GB/s"; empty: the value is a plain number
};

struct Objective {
  std::string metric;
  bool is_maximised = false;
  Place place = {};
};

/// Which legal configurations are simulated.
enum class Strategy : std::uint8_t {
  grid,             ///< all
  bounded,          ///< those whose bounds do not rule them out
  random,           ///< samples, each independent of the others
  latin_hypercube,  ///< samples of which each value range of each parameter gets as many as the others
  sobol,            ///< samples that fill the space evenly
};
/// Returns "grid", "bounded", ...
std::string_view name(Strategy strategy);
bool draws_samples(Strategy strategy);

/// How samples are drawn.
struct Sampling {
  std::uint32_t samples = 100;
  std::uint64_t seed = 1;
  std::uint32_t rounds = 0;  ///< rounds of further samples, around the best trials so far
  double factor = 2;         ///< factor by which their region shrinks in each round
};

/// A rule that marks trials whose metrics may be too good.
struct Caveat {
  Expression when;
  std::string text;
  bool is_default = false;  ///< it is left out where its keys have no values
};

/// What a trial may take; 0: no limit.
struct TrialLimits {
  double seconds = 0;        ///< seconds of wall-clock time
  std::uint64_t memory = 0;  ///< bytes of its simulation, by estimate
};

/// How all trials are simulated.
struct Fidelity {
  std::vector<std::pair<std::string, std::string>> settings;  ///< keys of CONFIG.yaml with their texts
  bool fold = true;                                           ///< NPUs that are alike are simulated once
};

/// What `orrery explore` searches (docs/exploration.md).
struct Study {
  std::string text;                   ///< text of STUDY.yaml, verbatim
  std::filesystem::path base;         ///< CONFIG.yaml
  Place base_place;                   ///< where the study names it
  std::string cost;                   ///< prices: a file or a preset; empty: those of the base
  std::vector<Parameter> parameters;  ///< the last one changes fastest
  std::vector<Derived> derived;
  std::vector<Expression> constraints;
  std::vector<Objective> objectives;
  std::uint32_t keep = 20;  ///< number of best trials that are kept, with one objective
  Strategy strategy = Strategy::grid;
  Sampling sampling;
  std::vector<Caveat> caveats;
  Fidelity fidelity;
  TrialLimits most;         ///< limits of each trial
  bool sensitivity = true;  ///< find what the best trial depends on
};

/// Returns the rules that hold unless a study has its own: ZeRO 3 over more than 512 NPUs. None if the study changes a
/// file or a section that may say so.
std::vector<Caveat> default_caveats(const Study& study);

/// Says whether a name is that of a metric, or the path of a number of results: "/metrics/idle_share".
bool is_metric(std::string_view name);
bool is_path(std::string_view name);
/// Says whether a name is a key of CONFIG.yaml, which expressions have in back quotes.
bool is_key(std::string_view name);
/// Returns whether a metric follows from prices.
bool needs_prices(std::string_view metric);

/// Returns all expressions of a study.
std::vector<const Expression*> expressions_of(const Study& study);
/// Returns the keys in back quotes that the study does not always set itself, each once: the base has their values.
std::vector<std::string> keys_of_base(const Study& study);
/// Returns the paths of results that constraints and objectives name, each once.
std::vector<std::string> paths_of(const Study& study);

/// Checks the names of expressions and objectives: each is a parameter, a derived value before it, `npus`, a key in
/// back quotes or, in constraints, objectives and caveats, a metric. Throws Error (bad_input) with the nearest name;
/// also for a key in back quotes within a section that the study changes as a whole, and for an interval without
/// samples.
void validate(const Study& study);

/// Checks that expressions compare and add quantities of the same kind only, as far as these are known: those of
/// metrics, of numbers and values with units, and of keys of the base, whose texts are given. Throws Error (bad_input),
/// which names both.
void require_dimensions(const Study& study, const std::map<std::string, std::string>& texts_of_keys);

}  // namespace orrery::explore
