#include "orrery/config/variants.hpp"

#include <algorithm>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <utility>

#include <fmt/format.h>

#include "keys/keys.hpp"
#include "orrery/base/text.hpp"
#include "resolution.hpp"

namespace orrery::config {
namespace {

constexpr std::string_view path_of_parallel = "workload.parallel.";
constexpr std::size_t most_parsed = 100'000;

/// Says whether a setting changes one key of workload.parallel.
bool is_of_parallel(std::string_view setting) {
  const std::size_t equals = setting.find('=');
  return setting.starts_with(path_of_parallel) && equals != std::string_view::npos &&
         equals > path_of_parallel.size() &&
         setting.substr(path_of_parallel.size(), equals - path_of_parallel.size()).find('.') == std::string_view::npos;
}

const Value* parallel_in(const Value& root) {
  const Value* const workload = root.find("workload");
  return workload == nullptr ? nullptr : workload->find("parallel");
}

/// The values of settings, each of which is parsed once.
class ParsedSettings {
 public:
  /// Puts the value of a setting of workload.parallel into this mapping, as apply_override does.
  void apply(Value& parallel, const std::string& setting, Faults& faults) {
    const std::size_t equals = setting.find('=');
    auto found = values_.find(setting);
    if (found == values_.end()) {
      const auto origin = std::make_shared<const Origin>(Origin{fmt::format("--set {}", setting), {}});
      Value value = parse_yaml(std::string_view(setting).substr(equals + 1), origin, faults);
      if (!faults.empty()) return;
      if (values_.size() == most_parsed) values_.clear();
      found = values_.emplace(setting, std::move(value)).first;
    }
    const std::string_view key =
        std::string_view(setting).substr(path_of_parallel.size(), equals - path_of_parallel.size());
    const auto entry = std::ranges::find(parallel.entries, key, &Value::Entry::key);
    if (entry != parallel.entries.end())
      entry->value = found->second;
    else
      parallel.entries.push_back({std::string(key), {}, found->second});
  }

 private:
  std::unordered_map<std::string, Value> values_;
};

}  // namespace

/// A configuration without its settings of workload.parallel.
struct Variants::Known {
  std::vector<std::string> settings;  ///< those of other keys
  Value parallel;                     ///< workload.parallel
  Configuration configuration;        ///< as KeysRead has it, without places of keys of workload.parallel
  ParsedSettings parsed;
};

Variants::Variants(Inputs common) : common_(std::move(common)) {}
Variants::~Variants() = default;

Configuration Variants::read_anew(const std::vector<std::string>& settings) const {
  Inputs inputs = common_;
  inputs.overrides.insert(inputs.overrides.end(), settings.begin(), settings.end());
  return config::read(inputs);
}

bool Variants::knows(std::vector<std::string> others, Faults& faults) {
  if (known_ && known_->settings == others) return true;
  known_.reset();
  std::vector<std::string> overrides = common_.overrides;
  overrides.insert(overrides.end(), others.begin(), others.end());
  auto [root, configuration] =
      read_keys_of(read_text(common_.file), {common_.file.string(), common_.file.parent_path()}, overrides,
                   common_.system_only, faults);
  const Value* const parallel = parallel_in(root);
  if (!faults.empty() || parallel == nullptr || parallel->kind != Value::Kind::mapping ||
      !configuration.workload.generated)
    return false;
  std::erase_if(configuration.places, [](const auto& place) { return place.first.starts_with(path_of_parallel); });
  known_ = std::make_unique<Known>(Known{std::move(others), *parallel, std::move(configuration), {}});
  return true;
}

// Nothing but workload.parallel itself is read from its mapping, and the keys that are read after it do not look at its
// values. So configurations that differ in nothing else have the same other keys. What is faulty is read anew, so that
// messages are the same.
Configuration Variants::read(const std::vector<std::string>& settings) {
  std::vector<std::string> of_parallel, others;
  for (const std::string& setting : settings) (is_of_parallel(setting) ? of_parallel : others).push_back(setting);
  const auto reaches_below = [](std::string_view setting) {
    return setting.starts_with(path_of_parallel) && !is_of_parallel(setting);
  };
  if (common_.astra_sim || std::ranges::any_of(common_.overrides, reaches_below) ||
      std::ranges::any_of(others, reaches_below))
    return read_anew(settings);
  Faults faults;
  std::optional<Configuration> result;
  faults.attempt([&] {
    if (!knows(std::move(others), faults)) return;
    Value parallel = known_->parallel;
    for (const std::string& setting : of_parallel) known_->parsed.apply(parallel, setting, faults);
    if (known_->parallel.all_notes() != parallel.all_notes()) return;
    result = known_->configuration;
    result->workload.generated->parallel = {};
    Reading reading{*result, faults, common_.system_only};
    Sections sections(Section(&parallel, "workload.parallel", parallel, faults));
    read_keys(parallel_keys(), sections, result->workload.generated->parallel, reading);
    sections.refuse_unknown();
    resolve_whole(common_, *result, faults);
  });
  return result && faults.empty() ? std::move(*result) : read_anew(settings);
}

}  // namespace orrery::config
