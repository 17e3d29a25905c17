#include "study_checks.hpp"

#include <algorithm>
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "orrery/base/mix.hpp"
#include "orrery/base/suggestion.hpp"
#include "orrery/base/text.hpp"
#include "orrery/config/serving.hpp"
#include "orrery/config/study.hpp"
#include "orrery/results/figures.hpp"
#include "orrery/run/collect.hpp"
#include "study_trials.hpp"

namespace orrery::study {
namespace {

using explore::Choice;
using explore::Point;
using explore::Study;

/// Refuses a study whose base is not there.
void require_base(const Study& study) {
  if (std::error_code failure; std::filesystem::exists(study.base, failure)) return;
  throw Error(ErrorCode::bad_input, study.base_place, fmt::format("{}: no such file", study.base.string()),
              "a CONFIG.yaml", "A relative path starts in the folder of the study.");
}

/// Refuses a study that changes the size of the network and uses the `npus` of its base.
void require_own_npus(const Study& study) {
  const auto is_npus = [](const auto& named) { return named.name == "npus"; };
  if (std::ranges::any_of(study.parameters, is_npus) || std::ranges::any_of(study.derived, is_npus)) return;
  const auto uses_npus = [](const explore::Expression& expression) {
    return std::ranges::find(expression.names(), "npus") != expression.names().end();
  };
  if (std::ranges::none_of(study.constraints, uses_npus) &&
      std::ranges::none_of(study.derived, uses_npus, &explore::Derived::value))
    return;
  for (const auto& parameter : study.parameters) {
    const std::string_view key = parameter.key;
    const bool is_size = key.starts_with("system.network.dimensions") && key.ends_with(".size");
    if (is_size || key == "system" || key == "system.base" || key == "system.network" ||
        key == "system.network.dimensions")
      throw Error(ErrorCode::bad_input, parameter.place,
                  fmt::format("'{}' changes the number of NPUs, for which expressions have the name npus", key),
                  "a parameter or a derived value with the name npus");
  }
}

/// Returns the number of NPUs of the base configuration. Throws Error (bad_input) if it has several workloads.
std::uint32_t base_npus(const Study& study, const ExploreCommand& command) {
  if (config::is_serving({.file = study.base})) {
    std::uint32_t count = 0;
    const auto serving = config::read_serving({.file = study.base, .overrides = command.overrides}).serving;
    for (const auto& entry : serving.instances) count += entry.count * entry.parallel.npus();
    return count;
  }
  const auto configuration = config::read({.file = study.base, .overrides = command.overrides, .system_only = true});
  if (!configuration.workload.jobs.empty())
    throw Error(ErrorCode::bad_input, configuration.place_of("jobs"), "found jobs in the configuration of a study",
                "workload: a study compares ways to run one workload", "orrery run --jobs-alone compares jobs.");
  std::uint32_t npus = 1;
  for (const auto& dimension : configuration.dimensions) npus *= dimension.size;
  return npus;
}

/// Returns the first place of a study that names a path of results.
Place place_of_path(const Study& study, const std::string& path) {
  for (const explore::Expression* const expression : explore::expressions_of(study))
    if (std::ranges::find(expression->names(), path) != expression->names().end()) return expression->place();
  const auto objective = std::ranges::find(study.objectives, path, &explore::Objective::metric);
  return objective == study.objectives.end() ? Place{} : objective->place;
}

/// Refuses a path of results that there is not.
void require_known_paths(const Study& study) {
  const auto figures = results::figure_names();
  for (const std::string& path : explore::paths_of(study)) {
    const std::string_view figure = std::string_view(path).substr(std::string_view("/metrics/").size());
    if (std::ranges::find(figures, figure) != figures.end()) continue;
    const std::string_view similar = nearest(figure, figures);
    throw Error(ErrorCode::bad_input, place_of_path(study, path),
                fmt::format("the study names `{}`, which results do not have", cited(path)),
                fmt::format("/metrics/ and one of {}", fmt::join(figures, ", ")),
                similar.empty() ? "" : fmt::format("Did you mean `/metrics/{}`?", similar));
  }
}

/// Refuses keys in back quotes that the configuration does not have, but for those of the default rules.
void require_known_keys(const Study& study, const std::vector<std::string>& keys, const explore::Names& known) {
  const auto refuse = [&](const explore::Expression& expression) {
    for (const std::string& key : expression.names())
      if (!known.contains(key) && std::ranges::find(keys, key) != keys.end())
        throw Error(ErrorCode::bad_input, expression.place(),
                    fmt::format("'{}' names the key `{}`, which the configuration does not have",
                                cited(expression.text()), cited(key)),
                    "a key with one value", "'orrery show keys' prints all keys.");
  };
  for (const auto& parameter : study.parameters)
    if (parameter.when) refuse(*parameter.when);
  for (const auto& derived : study.derived) refuse(derived.value);
  for (const auto& constraint : study.constraints) refuse(constraint);
  for (const auto& caveat : study.caveats)
    if (!caveat.is_default) refuse(caveat.when);
}

/// Finds faults that all points have in common.
class CommonFaults {
 public:
  CommonFaults(const Study& study, const ExploreCommand& command) : study_(study), command_(command) {
    for (const auto& parameter : study.parameters)
      if (!parameter.key.empty()) places_.emplace(parameter.key, parameter.place);
    for (const auto& derived : study.derived)
      if (!derived.key.empty()) places_.emplace(derived.key, derived.value.place());
  }

  /// Takes a point into account. Returns whether a fault is still common to all points so far. A point is not read if
  /// its values have been found faulty in others.
  bool look_at(const Point& point) {
    ++num_points_;
    if (num_read_ >= least_read && has_faulty_values(point)) return true;
    std::map<std::string, Error> found;
    const auto inputs = inputs_of(study_, command_, point);
    (serves_ ? config::faults_of_serving(inputs) : config::faults_of_keys(inputs)).for_each([&](const Error& fault) {
      found.emplace(identity_of(fault), fault);
    });
    if (num_read_++ == 0) common_ = found;
    std::erase_if(common_, [&](const auto& common) { return !found.contains(common.first); });
    for (const auto& setting : point.settings)
      if (common_.contains(setting.first)) faulty_.insert(setting);
    return !common_.empty();
  }
  /// Throws the faults that all have, at their places in the study.
  void raise() const {
    Faults faults;
    for (const auto& [identity, fault] : common_) {
      const auto place = places_.find(identity);
      faults.add(place == places_.end()
                     ? Error(ErrorCode::bad_input, fault.place(), fault.text())
                     : Error(ErrorCode::bad_input, place->second,
                             fmt::format("none of {} can be read: {}: {}", counted(num_points_, "configuration"),
                                         cited(setting_of(fault)), fault.text())));
    }
    faults.raise();
  }

 private:
  static constexpr std::size_t least_read = 64;
  static constexpr std::string_view override_prefix = "--set ";

  /// Returns "KEY=VALUE" of the setting that a fault stands in; nothing if it stands elsewhere.
  static std::string_view setting_of(const Error& fault) {
    const std::string_view file = fault.place().file;
    return file.starts_with(override_prefix) ? file.substr(override_prefix.size()) : std::string_view();
  }
  /// Returns the key of the study that has a fault, else the fault itself.
  std::string identity_of(const Error& fault) const {
    const std::string_view setting = setting_of(fault);
    std::string key(setting.substr(0, setting.find('=')));
    return places_.contains(key) ? key : std::string(fault.what());
  }
  bool has_faulty_values(const Point& point) const {
    return std::ranges::all_of(point.settings, [&](const auto& setting) {
      return !common_.contains(setting.first) || faulty_.contains(setting);
    });
  }

  const Study& study_;
  const ExploreCommand& command_;
  bool serves_ = config::is_serving({.file = study_.base});
  std::map<std::string, Place> places_;  ///< places of keys in the study
  std::map<std::string, Error> common_;  ///< errors by key of the study, or by text
  std::set<std::pair<std::string, std::string>> faulty_;
  std::uint64_t num_points_ = 0, num_read_ = 0;
};

/// Returns the key of a price that a metric needs and a system lacks; empty if it has all.
std::string lacking_price(std::string_view metric, const std::optional<cost::Hardware>& hardware) {
  if (!hardware) return "cost";
  const bool is_power = metric == "power" || metric == "energy_per_step" || metric == "tokens_per_j";
  if (is_power)
    return hardware->npu.busy_power <= 0   ? "cost.npu.busy-power"
           : hardware->npu.idle_power <= 0 ? "cost.npu.idle-power"
                                           : "";
  const bool is_price = metric == "usd_per_step" || metric == "tokens_per_usd";
  if (is_price && hardware->npu.rent > 0) return "";
  if (!hardware->capex()) return is_price ? "cost.npu.rent or cost.npu.price" : "cost.npu.price";
  return is_price && hardware->operation.lifetime_years <= 0 ? "cost.npu.rent or cost.operation.lifetime" : "";
}

/// Returns the metrics that a study needs and that follow from prices, with the places that name them.
std::map<std::string, Place> priced_metrics(const Study& study) {
  std::map<std::string, Place> metrics;
  for (const auto& constraint : study.constraints)
    for (const std::string& name : constraint.names())
      if (explore::needs_prices(name)) metrics.emplace(name, constraint.place());
  for (const auto& objective : study.objectives)
    if (explore::needs_prices(objective.metric)) metrics.emplace(objective.metric, objective.place);
  return metrics;
}

}  // namespace

// Algorithm R (Vitter, ACM Transactions on Mathematical Software 11(1), 1985) with draws that are keyed by the number
// of the point.
void Specimens::add(const Choice& choice) {
  const std::uint64_t number = num_added_++;
  if (choices_.size() < most_) return choices_.push_back(choice);
  if (const std::uint64_t drawn = mix(0, number) % num_added_; drawn < most_) choices_[drawn] = choice;
}

explore::Space space_of(const Study& study, const ExploreCommand& command) {
  require_base(study);
  require_own_npus(study);
  require_known_paths(study);
  explore::Names given{{"npus", std::int64_t{base_npus(study, command)}}};
  std::map<std::string, std::string> texts;  // of keys
  const bool serves = config::is_serving({.file = study.base});
  if (const auto keys = serves ? std::vector<std::string>() : explore::keys_of_base(study); !keys.empty()) {
    texts = config::read_values(common_inputs(study, command), keys);
    for (const auto& [key, text] : texts) given[key] = explore::value_of(text);
    require_known_keys(study, keys, given);
  }
  explore::require_dimensions(study, texts);
  return {study, std::move(given)};
}

void require_readable(const explore::Space& space, const ExploreCommand& command, const Specimens& specimens,
                      const std::function<void(const std::function<bool(const Point&)>&)>& visit_all) {
  if (specimens.choices().empty()) return;
  CommonFaults some(space.study(), command);
  for (const Choice& choice : specimens.choices())
    if (!some.look_at(space.at(choice).value())) return;
  CommonFaults all(space.study(), command);
  bool has_common = true;
  visit_all([&](const Point& point) { return has_common = all.look_at(point); });
  if (has_common) all.raise();
}

void require_prices(const explore::Space& space, const ExploreCommand& command, const Specimens& specimens) {
  const Study& study = space.study();
  const auto metrics = priced_metrics(study);
  if (!metrics.empty() && config::is_serving({.file = study.base}))
    throw Error(ErrorCode::bad_input, metrics.begin()->second,
                fmt::format("found '{}', which is of steps of a workload", metrics.begin()->first),
                "a metric of requests, because the base serves them");
  std::map<std::string, std::string> lacking;  // keys, by metric
  for (const auto& [metric, place] : metrics) lacking[metric] = "";
  bool has_read = false;
  for (const Choice& choice : specimens.choices()) {
    if (lacking.empty()) return;
    const auto findings = config::examine(inputs_of(study, command, space.at(choice).value()));
    if (!findings.faults.empty()) continue;
    has_read = true;
    const auto hardware = run::hardware_of(*findings.configuration);
    for (auto& [metric, key] : lacking) key = lacking_price(metric, hardware);
    std::erase_if(lacking, [](const auto& one) { return one.second.empty(); });
  }
  if (!has_read) return;
  Faults faults;
  for (const auto& [metric, key] : lacking)
    faults.add(Error(ErrorCode::bad_input, metrics.at(metric),
                     fmt::format("found '{}', which follows from prices, and no configuration has {}", metric,
                                 key == "cost" ? "`cost`" : key),
                     "a metric whose prices are known",
                     key == "cost" ? "Give `cost: FILE_OR_PRESET` beside `study`, or `cost` in the base "
                                     "(docs/cost.md)."
                                   : "Give it in the file of `cost`, or with --set (docs/cost.md)."));
  faults.raise();
}

}  // namespace orrery::study
