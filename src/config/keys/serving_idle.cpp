#include <algorithm>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "idle_keys.hpp"
#include "orrery/config/serving.hpp"
#include "serving.hpp"

namespace orrery::config {
namespace {

using serving::Arrivals;
using serving::Description;
using serving::InstanceOptions;
using serving::Lengths;

/// Keys of `serving` that have no effect where a setting is not as they need it. A key with a dot at its end stands for
/// all below it.
struct Condition {
  std::vector<std::string_view> keys;  ///< without the numbers of items of lists
  std::string_view otherwise;          ///< where they have none: "without x: y", "with x: z"
  bool (*holds)(const Description& d);
};

bool has_step_model(const Description& d, std::initializer_list<std::string_view> names) {
  return std::ranges::find(names, d.step.model.name()) != names.end();
}

bool has_arrivals(const Description& d, std::initializer_list<Arrivals> processes) {
  return d.requests.file.empty() && std::ranges::find(processes, d.requests.arrivals) != processes.end();
}

template <class Holds>
bool has_instance(const Description& d, Holds holds) {
  return std::ranges::any_of(d.instances, holds);
}

bool has_decode(const Description& d) {
  return has_instance(d, [](const InstanceOptions& i) { return i.role == serving::Role::decode; });
}

/// Says whether the blocks of an instance follow from its memory.
bool has_blocks_by_memory(const Description& d) {
  return has_instance(d, [](const InstanceOptions& i) { return i.kv_blocks == 0; });
}

bool has_experts(const Description& d) { return d.model && d.model->mlp.experts > 0; }

std::vector<Condition> of_requests() {
  return {
      {{"serving.requests.limit", "serving.requests.window"},
       "without serving.requests.file",
       [](const Description& d) { return !d.requests.file.empty(); }},
      {{"serving.requests.count", "serving.requests.arrivals", "serving.requests.rate", "serving.requests.cv",
        "serving.requests.burst-rate", "serving.requests.burst", "serving.requests.period", "serving.requests.users",
        "serving.requests.think", "serving.requests.prompt", "serving.requests.output",
        "serving.requests.shared-prefix."},
       "with serving.requests.file",
       [](const Description& d) { return d.requests.file.empty(); }},
      {{"serving.requests.format"},
       "without serving.requests.file",
       [](const Description& d) { return !d.requests.file.empty(); }},
      {{"serving.requests.rate", "serving.requests.rate-scale"},
       "with serving.requests.arrivals: closed",
       [](const Description& d) { return !has_arrivals(d, {Arrivals::closed}); }},
      {{"serving.requests.cv"},
       "without serving.requests.arrivals: gamma",
       [](const Description& d) { return has_arrivals(d, {Arrivals::gamma}); }},
      {{"serving.requests.burst-rate", "serving.requests.burst", "serving.requests.period"},
       "without serving.requests.arrivals: bursts",
       [](const Description& d) { return has_arrivals(d, {Arrivals::bursts}); }},
      {{"serving.requests.users", "serving.requests.think"},
       "without serving.requests.arrivals: closed",
       [](const Description& d) { return has_arrivals(d, {Arrivals::closed}); }},
      {{"serving.requests.shared-prefix.groups"},
       "without serving.requests.shared-prefix.tokens",
       [](const Description& d) { return d.requests.shared_tokens > 0; }},
  };
}

/// Returns whether lengths are drawn in one of some ways.
bool are_drawn(const Lengths& lengths, std::initializer_list<Lengths::Kind> kinds) {
  return std::ranges::find(kinds, lengths.kind) != kinds.end();
}

std::vector<Condition> of_lengths() {
  using Kind = Lengths::Kind;
  return {
      {{"serving.requests.prompt.value"},
       "without serving.requests.prompt.distribution: constant",
       [](const Description& d) { return are_drawn(d.requests.prompt, {Kind::constant}); }},
      {{"serving.requests.output.value"},
       "without serving.requests.output.distribution: constant",
       [](const Description& d) { return are_drawn(d.requests.output, {Kind::constant}); }},
      {{"serving.requests.prompt.least", "serving.requests.prompt.most"},
       "without serving.requests.prompt.distribution: uniform or log-normal",
       [](const Description& d) {
         return are_drawn(d.requests.prompt, {Kind::uniform, Kind::log_normal});
       }},
      {{"serving.requests.output.least", "serving.requests.output.most"},
       "without serving.requests.output.distribution: uniform or log-normal",
       [](const Description& d) {
         return are_drawn(d.requests.output, {Kind::uniform, Kind::log_normal});
       }},
      {{"serving.requests.prompt.median", "serving.requests.prompt.sigma"},
       "without serving.requests.prompt.distribution: log-normal",
       [](const Description& d) { return are_drawn(d.requests.prompt, {Kind::log_normal}); }},
      {{"serving.requests.output.median", "serving.requests.output.sigma"},
       "without serving.requests.output.distribution: log-normal",
       [](const Description& d) { return are_drawn(d.requests.output, {Kind::log_normal}); }},
      {{"serving.requests.prompt.file"},
       "without serving.requests.prompt.distribution: empirical",
       [](const Description& d) { return are_drawn(d.requests.prompt, {Kind::empirical}); }},
      {{"serving.requests.output.file"},
       "without serving.requests.output.distribution: empirical",
       [](const Description& d) { return are_drawn(d.requests.output, {Kind::empirical}); }},
  };
}

std::vector<Condition> of_serving_instances() {
  return {
      {{"serving.memory", "serving.weights", "serving.instances.memory-share", "serving.instances.reserve"},
       "with serving.instances.kv-blocks",
       has_blocks_by_memory},
      {{"serving.precision.weights"},
       "with kv-blocks or serving.weights, and without serving.step.model: system",
       [](const Description& d) {
         return (has_blocks_by_memory(d) && d.weight_bytes == 0) || has_step_model(d, {"system"});
       }},
      {{"serving.precision.kv"},
       "with serving.kv-bytes-per-token, and without serving.step.model: system",
       [](const Description& d) { return d.kv_bytes_per_token == 0 || has_step_model(d, {"system"}); }},
      {{"serving.router.policy"},
       "with one instance",
       [](const Description& d) {
         return d.instances.size() > 1 ||
                has_instance(d, [](const InstanceOptions& i) { return i.count > 1 || i.parallel.dp > 1; });
       }},
      {{"serving.router.report"},
       "without a policy that looks at instances, role: decode, or requests that follow others",
       [](const Description& d) {
         return d.router.policy->looks_at_instances || has_decode(d) || !d.requests.file.empty() ||
                has_arrivals(d, {Arrivals::closed});
       }},
      {{"serving.transfer."}, "without serving.instances.role: decode", has_decode},
      {{"serving.transfer.bandwidth"},
       "with serving.transfer.network: simulated",
       [](const Description& d) { return !d.transfer.over_network; }},
      {{"serving.instances.allocation"},
       "without serving.transfer.network or serving.step.network: simulated",
       [](const Description& d) { return d.transfer.over_network || d.step.over_network; }},
  };
}

std::vector<Condition> of_steps() {
  return {
      {{"serving.step.linear."},
       "without serving.step.model: linear",
       [](const Description& d) { return has_step_model(d, {"linear"}); }},
      {{"serving.step.fitted."},
       "without serving.step.model: fitted",
       [](const Description& d) { return has_step_model(d, {"fitted"}); }},
      {{"serving.step.fitted.large-decode"},
       "without serving.step.fitted.threshold",
       [](const Description& d) { return d.step.fitted.threshold > 0; }},
      {{"serving.step.tables"},
       "without serving.step.model: profile, operators or batches",
       [](const Description& d) {
         return has_step_model(d, {"profile", "operators", "batches"});
       }},
      {{"serving.step.skew"},
       "without serving.step.model: profile",
       [](const Description& d) { return has_step_model(d, {"profile"}); }},
      {{"serving.step.products", "serving.step.attention", "serving.step.experts", "serving.step.distribution",
        "serving.step.small", "serving.step.memory-bandwidth"},
       "without serving.step.model: operators",
       [](const Description& d) { return has_step_model(d, {"operators"}); }},
      {{"serving.step.experts", "serving.step.distribution"}, "with a model without experts", has_experts},
      {{"serving.step.ring."},
       "with serving.step.model: system or serving.step.network: simulated",
       [](const Description& d) { return !has_step_model(d, {"system"}) && !d.step.over_network; }},
      {{"serving.step.network"},
       "without parallel.tp or parallel.pp above 1, or shared experts",
       [](const Description& d) {
         return d.model && has_instance(d, [&](const InstanceOptions& i) {
                  return i.parallel.pp > 1 ||
                         (i.parallel.tp > 1 && has_step_model(d, {"system", "profile", "operators"})) ||
                         (i.parallel.dp > 1 && has_experts(d) && has_step_model(d, {"profile", "operators"}));
                });
       }},
      {{"serving.step.ring."},
       "without a model, and parallel.pp above 1, parallel.tp above 1 in profiles, or shared experts",
       [](const Description& d) {
         return d.model && has_instance(d, [&](const InstanceOptions& i) {
                  return i.parallel.pp > 1 || (i.parallel.tp > 1 && has_step_model(d, {"profile"})) ||
                         (i.parallel.dp > 1 && has_experts(d) && has_step_model(d, {"profile", "operators"}));
                });
       }},
      {{"serving.host.layer"},
       "without serving.step.model: system",
       [](const Description& d) { return has_step_model(d, {"system"}); }},
      {{"serving.host."},
       "without serving.step.model: system, profile, operators or batches",
       [](const Description& d) {
         return has_step_model(d, {"system", "profile", "operators", "batches"});
       }},
      {{"serving.step.graph-sizes"},
       "without serving.step.model: system, profile or operators, or a model and parallel.pp above 1",
       [](const Description& d) {
         return has_step_model(d, {"system", "profile", "operators"}) ||
                (d.model && has_instance(d, [](const InstanceOptions& i) { return i.parallel.pp > 1; }));
       }},
  };
}

std::vector<Condition> of_experts() {
  return {
      {{"serving.experts.", "serving.instances.parallel.ep"},
       "without experts and a serving.step.model that divides them",
       [](const Description& d) {
         return has_experts(d) && has_step_model(d, {"profile", "operators"});
       }},
      {{"serving.experts."},
       "without serving.step.model: profile, or operators with parallel.dp above 1",
       [](const Description& d) {
         return has_step_model(d, {"profile"}) ||
                (has_step_model(d, {"operators"}) &&
                 has_instance(d, [](const InstanceOptions& i) { return i.parallel.dp > 1; }));
       }},
      {{"serving.experts.load", "serving.experts.exponent", "serving.experts.file"},
       "without serving.step.model: profile",
       [](const Description& d) { return has_step_model(d, {"profile"}); }},
      {{"serving.experts.exponent"},
       "without serving.experts.load: power-law",
       [](const Description& d) { return d.step.experts.load == serving::ExpertOptions::Load::power_law; }},
      {{"serving.experts.file"},
       "without serving.experts.load: file",
       [](const Description& d) { return d.step.experts.load == serving::ExpertOptions::Load::file; }},
      {{"serving.experts.dispatch-bytes", "serving.experts.combine-bytes"},
       "with serving.experts.exchange: gather",
       [](const Description& d) { return d.step.experts.exchange != serving::Exchange::gather; }},
  };
}

}  // namespace

std::vector<std::string> warnings_of_idle_serving_keys(const ServingConfiguration& configuration,
                                                       std::string_view file) {
  auto open = changed_keys_of(configuration.system, file);  // paths that a warning may be about, and their keys
  std::vector<std::string> warnings;
  for (const auto& conditions : {of_requests(), of_lengths(), of_serving_instances(), of_steps(), of_experts()})
    for (const Condition& condition : conditions) {
      if (condition.holds(configuration.serving)) continue;
      std::vector<std::string_view> idle;
      for (const auto& [path, key] : open)
        if (is_among(condition.keys, key)) idle.push_back(path);
      if (idle.empty()) continue;
      warnings.push_back(warning_of_idle_paths(idle, condition.otherwise));
      for (const std::string_view path : idle) open.erase(path);
    }
  return warnings;
}

}  // namespace orrery::config
