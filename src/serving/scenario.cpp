#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "orrery/base/error.hpp"
#include "orrery/base/faults.hpp"
#include "orrery/base/text.hpp"
#include "orrery/serving/description.hpp"
#include "orrery/workload/figures.hpp"

namespace orrery::serving {
namespace {

/// Returns the key of an entry of serving.instances.
std::string key_of(const Description& description, const InstanceOptions& instance) {
  for (std::size_t e = 0; e < description.instances.size(); ++e)
    if (&description.instances[e] == &instance) return fmt::format("serving.instances.{}", e);
  return "serving.instances";
}

/// Returns by how much the model is larger than what the largest stage of a pipeline has of it.
double stages_of(const Description& description, std::uint32_t pp) {
  if (!description.model) return pp;
  const std::uint32_t layers = description.model->layers;
  return static_cast<double>(layers) / layers_of_stage(layers, pp, 0);
}

/// Returns the keys and values of a token on one NPU, in bytes.
double kv_bytes_on_npu(const Description& description, const InstanceParallel& parallel) {
  const double stages = stages_of(description, parallel.pp);
  if (description.kv_bytes_per_token > 0 || !description.model)
    return static_cast<double>(description.kv_bytes_per_token) / (parallel.tp * stages);
  const workload::Transformer& model = *description.model;
  const double all = static_cast<double>(kv_bytes_per_token(model, description.kv->bytes));
  if (model.is_latent()) return all / stages;  // each NPU holds the whole vector
  const double heads = model.kv_heads();
  return all / heads * std::max(1.0, heads / parallel.tp) / stages;
}

/// Returns the share of the weights that belong to routed experts, which expert parallelism divides.
double share_of_experts(const Description& description) {
  if (!description.model || description.model->mlp.experts < 2) return 0;
  const auto parameters = [](const workload::Transformer& model) {
    return static_cast<double>(workload::figures_of_model({model, {}}).parameters);
  };
  workload::Transformer fewer = *description.model;
  fewer.mlp.experts -= 1;
  const double all = parameters(*description.model);
  return (all - parameters(fewer)) * description.model->mlp.experts / all;
}

double weights_on_npu(const Description& description, const InstanceParallel& parallel) {
  double all = static_cast<double>(description.weight_bytes);
  if (all == 0 && description.model)
    all = static_cast<double>(workload::figures_of_model({*description.model, {}}).parameters) *
          description.weights->bytes;
  const double dense = all * (1 - share_of_experts(description));
  const double experts = all - dense;
  return (dense / parallel.tp + experts / std::max(parallel.tp, parallel.ep)) / stages_of(description, parallel.pp);
}

void require_parallel(const workload::Transformer& model, const InstanceOptions& instance, const std::string& at) {
  const InstanceParallel& p = instance.parallel;
  const auto refuse = [&](const char* key, const std::string& found, const std::string& expected) {
    throw Error(ErrorCode::bad_input, {.key = at + ".parallel." + key}, found, expected);
  };
  if (p.pp > model.layers)
    refuse("pp", fmt::format("found {}", p.pp), fmt::format("at most the {} layers", model.layers));
  if (model.attention.heads % p.tp != 0)
    refuse("tp", fmt::format("found {}", p.tp), fmt::format("a divisor of the {} heads", model.attention.heads));
  if (model.kv_heads() > 1 && model.kv_heads() % p.tp != 0 && p.tp % model.kv_heads() != 0)
    refuse("tp", fmt::format("found {}", p.tp),
           fmt::format("a divisor or a multiple of the {} heads of keys and values", model.kv_heads()));
  if (p.ep > 1 && model.mlp.experts == 0) refuse("ep", fmt::format("found {}, but the model is dense", p.ep), "1");
  if (model.mlp.experts > 0 && (model.mlp.experts % p.ep != 0 || model.mlp.experts % p.dp != 0))
    refuse(model.mlp.experts % p.ep != 0 ? "ep" : "dp",
           fmt::format("found {}", model.mlp.experts % p.ep != 0 ? p.ep : p.dp),
           fmt::format("a divisor of the {} experts", model.mlp.experts));
  if (p.tp * p.dp % p.ep != 0)
    refuse("ep", fmt::format("found {}", p.ep), fmt::format("a divisor of the {} NPUs of tp and dp", p.tp * p.dp));
}

void require_roles(const Description& description, Faults& faults) {
  bool has[3] = {};
  for (const InstanceOptions& instance : description.instances) has[static_cast<int>(instance.role)] = true;
  const auto place = Place{.key = "serving.instances"};
  if (has[1] != has[2])
    faults.add(Error(ErrorCode::bad_input, place,
                     fmt::format("there are instances with the role {} and none with the role {}",
                                 has[1] ? "prefill" : "decode", has[1] ? "decode" : "prefill"),
                     "both roles, or role: both"));
  for (const InstanceOptions& instance : description.instances)
    if (instance.scheduler.block != description.instances.front().scheduler.block)
      faults.add(Error(ErrorCode::bad_input, place,
                       fmt::format("instances have blocks of {} and of {} tokens",
                                   description.instances.front().scheduler.block, instance.scheduler.block),
                       "one size, so that blocks can be sent"));
}

/// Adds a fault for the first request that an instance cannot hold.
void require_room(const Scenario& scenario, Faults& faults) {
  std::vector<bool> is_told(scenario.instances.size());
  for (std::uint32_t id = 0; id < scenario.requests.size(); ++id) {
    const Request& request = scenario.requests[id];
    for (std::size_t i = 0; i < scenario.instances.size(); ++i) {
      const InstanceSpec& instance = scenario.instances[i];
      const auto& options = instance.scheduler;
      if (is_told[i]) continue;
      const std::uint64_t all = std::uint64_t{request.prompt} + request.output;
      if (options.max_length > 0 && all > options.max_length) {
        faults.add(Error(ErrorCode::bad_input, fmt::format("request {}: {} + {} tokens exceed max-length {}", id,
                                                           request.prompt, request.output, options.max_length)));
        return;
      }
      const bool is_decode = instance.role == Role::decode;
      if (is_decode && request.output == 1) continue;
      const std::uint64_t most =
          request.prompt + (instance.role == Role::prefill ? 0 : std::uint64_t{request.output} - 1);
      const std::uint64_t need = (most + options.block - 1) / options.block;
      if (need <= instance.kv_blocks) continue;
      is_told[i] = true;
      faults.add(Error(ErrorCode::bad_input,
                       fmt::format("request {} needs {} KV blocks, instance {} has {}: use more NPUs, a larger "
                                   "memory-share or a shorter limit",
                                   id, need, instance.name, instance.kv_blocks)));
    }
  }
}

void require_delays(const Scenario& scenario, Faults& faults) {
  const RouterOptions& router = scenario.options.router;
  const auto roles = scenario.roles();
  const bool has_decode = std::ranges::count(roles, Role::decode) > 0;
  const bool decides_late = router.policy->looks_at_instances || scenario.requests.is_closed || has_decode;
  const bool over_network =
      std::ranges::any_of(scenario.instances, [](const InstanceSpec& i) { return i.programs != nullptr; });
  if (over_network || (scenario.instances.size() > 1 && decides_late))
    for (const auto& [key, time] :
         {std::pair("serving.router.dispatch", router.dispatch), std::pair("serving.router.report", router.report)})
      if (time < Time::from_ps(1))
        faults.add(Error(ErrorCode::bad_input, {.key = key}, "found 0",
                         fmt::format("1 ps or more: {}",
                                     over_network ? "the steps are in the simulated network"
                                     : router.policy->looks_at_instances
                                         ? fmt::format("the policy {} looks at several instances", router.policy.name())
                                         : "the router learns of ends and then sends requests to several instances")));
  if (has_decode && scenario.options.transfer.latency < Time::from_ps(1))
    faults.add(Error(ErrorCode::bad_input, {.key = "serving.transfer.latency"}, "found 0", "1 ps or more"));
}

/// Adds a fault if it is known that no request arrives in the window.
void require_window(const Description& description, const Requests& requests, Faults& faults) {
  if (requests.is_closed || requests.list.empty()) return;
  Time last;
  for (const Request& request : requests.list) last = std::max(last, request.arrival);
  if (last < description.measure.from)
    faults.add(Error(
        ErrorCode::bad_input, {.key = "serving.measure.from"},
        fmt::format("found {}, and the last request arrives at {}", readable(description.measure.from), readable(last)),
        "a time before that"));
}

/// Returns the stages of an instance. `npus`: NPUs of the instance; empty: any.
Pipeline pipeline_of(const Description& description, const InstanceOptions& instance, std::span<const NpuId> npus,
                     const std::string& entry) {
  const InstanceParallel& parallel = instance.parallel;
  Pipeline pipeline{.stages = parallel.pp, .tp = parallel.tp};
  if (parallel.pp == 1 || !description.model) return pipeline;
  constexpr std::uint64_t width = 2;  // bytes of an activation
  pipeline.row_bytes = description.model->hidden * width;
  pipeline.graph_sizes = description.step.graph_sizes;
  if (description.step.model->uses_network)
    pipeline.hop = description.step.hops(npus, parallel, entry);
  else
    pipeline.hop = [ring = description.step.ring](Bytes size) {
      return ring.latency + delay(0, size, ring.bandwidth, Rounding::up_to_ps);
    };
  return pipeline;
}

}  // namespace

std::uint64_t kv_bytes_per_token(const workload::Transformer& model, double bytes_per_value) {
  const double values = model.is_latent()
                            ? static_cast<double>(model.layers * (model.latent.key_value + model.latent.rotary))
                            : 2.0 * model.layers * static_cast<double>(model.kv_heads() * model.head_width());
  return static_cast<std::uint64_t>(std::llround(values * bytes_per_value));
}

std::uint32_t kv_blocks(const Description& description, const InstanceOptions& instance) {
  if (instance.kv_blocks > 0) return instance.kv_blocks;
  const double per_token = kv_bytes_on_npu(description, instance.parallel);
  if (description.memory == Bytes(0) || per_token == 0)
    throw Error(ErrorCode::bad_input, {.key = key_of(description, instance)},
                fmt::format("instance {} has neither kv-blocks nor {}", instance.name,
                            per_token == 0 ? "a model whose keys and values have a size" : "a memory of a known size"),
                "kv-blocks, or serving.model and a memory (serving.memory or system.local-memory.size)");
  const double share = instance.memory_share * static_cast<double>(description.memory.count());
  const double weights = weights_on_npu(description, instance.parallel);
  const double left = share - weights - static_cast<double>(instance.reserve.count());
  const double blocks = std::floor(left / (instance.scheduler.block * per_token)) - 1;
  if (blocks < 1)
    throw Error(
        ErrorCode::bad_input,
        fmt::format("instance {}: weights of {}B and {} reserve leave no KV blocks of {} ({} NPUs, memory-share "
                    "{}): use more NPUs or fewer bytes for weights",
                    instance.name, with_prefix(weights), size_text(instance.reserve.count(), 1U << 20U),
                    size_text(static_cast<std::uint64_t>(share), 1U << 20U), instance.parallel.npus(),
                    instance.memory_share));
  return static_cast<std::uint32_t>(std::min(blocks, 4e9));
}

void Scenario::validate() const {
  Faults faults;
  require_delays(*this, faults);
  require_room(*this, faults);
  faults.raise();
}

Scenario make_scenario(const Description& description) {
  Faults faults;
  Scenario scenario;
  scenario.options = {description.router, description.transfer, description.record_steps, description.seed,
                      description.measure};
  require_roles(description, faults);
  faults.attempt([&] {
    scenario.requests =
        make_requests(description.requests, description.instances.front().scheduler.block, description.seed);
  });
  require_window(description, scenario.requests, faults);
  scenario.kv_bytes_per_token = description.kv_bytes_per_token > 0 || !description.model
                                    ? description.kv_bytes_per_token
                                    : kv_bytes_per_token(*description.model, description.kv->bytes);
  scenario.layers = description.model ? description.model->layers : 0;
  if (description.transfer.by_layer && !description.model)
    faults.add(Error(ErrorCode::bad_input, {.key = "serving.transfer.send"}, "found layers, and no serving.model",
                     "whole, or the sizes of a model"));
  if (description.step.model->needs_model && !description.model)
    faults.add(Error(ErrorCode::bad_input, {.key = "serving.model"},
                     fmt::format("it is missing, and step.model is {}", description.step.model.name()),
                     "the sizes of a model, or the name of a preset"));
  faults.raise();
  std::uint32_t number = 0;
  for (std::size_t e = 0; e < description.instances.size(); ++e) {
    const InstanceOptions& entry = description.instances[e];
    faults.attempt([&] {
      const std::string path = fmt::format("serving.instances.{}", e);
      if (description.model) require_parallel(*description.model, entry, path);
      const std::uint32_t blocks = kv_blocks(description, entry);
      std::shared_ptr<StepModel> cost;
      const std::size_t each = entry.npus.size() / entry.count;
      const bool is_placed = description.step.model->uses_network && !entry.npus.empty() &&
                             (entry.parallel.tp > 1 || entry.parallel.pp > 1);
      const bool is_shared = !description.step.linear.is_exponential && !is_placed;
      for (std::uint32_t i = 0; i < entry.count; ++i) {
        const std::span npus = std::span(entry.npus).subspan(i * each, each);
        if (!cost || !is_shared)
          cost = description.step.model->make({description.step, description.model ? &*description.model : nullptr,
                                               entry.parallel, description.weights, description.kv, description.seed,
                                               number, npus, path});
        scenario.instances.push_back({.name = fmt::format("{}.{}", entry.name, i),
                                      .role = entry.role,
                                      .members = entry.parallel.dp,
                                      .kv_blocks = blocks,
                                      .scheduler = entry.scheduler,
                                      .pipeline = pipeline_of(description, entry, npus, path),
                                      .cost = cost,
                                      .programs = description.step.over_network ? description.step.programs() : nullptr,
                                      .npus = {npus.begin(), npus.end()}});
        number += entry.parallel.dp;
      }
    });
  }
  faults.raise();
  scenario.validate();
  return scenario;
}

}  // namespace orrery::serving
