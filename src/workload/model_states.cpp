#include "model_states.hpp"

#include <fmt/format.h>

#include "ops.hpp"

namespace orrery::workload {

using trace::CollectiveKind;
using trace::NodeKind;

namespace {

constexpr std::uint64_t optimizer_flops = 12;  // of Adam, for each parameter

/// Bytes that Adam moves for each parameter: it reads the gradient, reads and writes its state, writes the parameter.
std::uint64_t optimizer_traffic(const Parallel& parallel) {
  const std::uint64_t weights = value_bytes(parallel.precision) * (parallel.precision == Precision::fp32 ? 2 : 1);
  return value_bytes(parallel.gradients) + 2 * optimizer_state_bytes(parallel.precision) + weights;
}

void append(std::vector<NodeId>& nodes, const std::optional<NodeId>& node) {
  if (node) nodes.push_back(*node);
}

void append(std::vector<NodeId>& nodes, const std::vector<NodeId>& more) {
  nodes.insert(nodes.end(), more.begin(), more.end());
}

}  // namespace

Places model_states(const Parallel& parallel, std::span<const Layer* const> layers) {
  std::uint64_t dense = 0, experts = 0, sharded = 0;
  for (const Layer* layer : layers) {
    dense += layer->dense;
    experts += layer->experts;
    sharded += layer->sharded;
  }
  const auto held = [&](std::uint32_t zero) {
    if (parallel.zero < zero) return dense + experts;
    return share(dense, group_size(parallel, GroupKind::data)) +
           share(experts, group_size(parallel, GroupKind::expert_data));
  };
  const std::uint64_t parameter = value_bytes(parallel.precision), gradient = value_bytes(parallel.gradients);
  const auto& offload = parallel.offload;
  Places places;
  places.local.parameters = parameter * sharded;
  (offload.parameters ? places.remote : places.local).parameters += parameter * held(3);
  if (offload.gradients) places.remote.gradients = gradient * held(1);
  if (!offload.gradients || (parallel.zero < 2 && parallel.micro_batches > 1))
    places.local.gradients = gradient * held(2);
  (offload.optimizer ? places.remote : places.local).optimizer = optimizer_state_bytes(parallel.precision) * held(1);
  return places;
}

std::uint64_t optimizer_state_bytes(Precision precision) { return precision == Precision::fp32 ? 8 : 12; }

std::vector<ModelStates::Part> ModelStates::parts_of(const Layer& layer) {
  std::vector<Part> parts;
  if (layer.dense > 0) parts.push_back({GroupKind::data, layer.dense, ""});
  if (layer.experts > 0) parts.push_back({GroupKind::expert_data, layer.experts, "experts."});
  return parts;
}

/// Layer by layer if something of it is in remote memory, else all at once.
std::vector<ModelStates::Portion> ModelStates::portions() const {
  if (!parallel_.offload.any()) return {{"optimizer", layers_}};
  std::vector<Portion> portions;
  for (const Layer* const& layer : layers_)
    if (layer->update || !parts_of(*layer).empty())
      portions.push_back({fmt::format("optimizer.{}", layer->name), std::span(&layer, 1)});
  return portions;
}

std::uint64_t ModelStates::held(const Part& part, std::uint32_t stage) const {
  return parallel_.zero >= stage ? share(part.parameters, group_size(parallel_, part.group)) : part.parameters;
}

std::uint64_t ModelStates::updated_by_npu(const Portion& portion) const {
  std::uint64_t own = 0;
  for (const Layer* layer : portion.layers)
    for (const Part& part : parts_of(*layer)) own += held(part, 1);
  return own;
}

ModelStates::Nodes ModelStates::together(std::string name, NodeKind kind, CollectiveKind collective,
                                         std::uint64_t bytes, GroupKind group, Nodes after) {
  const auto number = static_cast<std::uint32_t>(group);
  if (group_size(parallel_, group) == 1)
    return kind == NodeKind::collective ? after : access(std::move(name), kind, bytes, std::move(after));
  append(after, last_together_);
  if (kind == NodeKind::collective)
    last_together_ = builder_.collective(std::move(name), collective, Bytes(bytes), number, after);
  else
    last_together_ = builder_.access(std::move(name), kind, Bytes(bytes), collective, number, after);
  return {*last_together_};
}

ModelStates::Nodes ModelStates::access(std::string name, NodeKind kind, std::uint64_t bytes, Nodes after) {
  if (bytes == 0) return after;
  auto& last = kind == NodeKind::mem_load ? last_load_ : last_store_;
  append(after, last);
  last = builder_.access(std::move(name), kind, Bytes(bytes), after);
  return {*last};
}

ModelStates::Fetched ModelStates::fetch(const Layer& layer, const std::string& pass, const Nodes& after) {
  Fetched fetched;
  for (const Part& part : parts_of(layer)) {
    const std::uint32_t copies = group_size(parallel_, part.group);
    const bool gathers = parallel_.zero == 3 && copies > 1, loads = parallel_.offload.parameters;
    if (!gathers && !loads) continue;
    const std::uint64_t own = held(part, 3) * value_bytes(parallel_.precision), all = gathers ? own * copies : own;
    const std::string name = fmt::format("{}.parameters.{}", pass, part.prefix);
    const auto gather = [&](std::string_view what, NodeKind kind, std::uint64_t bytes, Nodes from) {
      return together(fmt::format("{}{}", name, what), kind, CollectiveKind::all_gather, bytes, part.group,
                      std::move(from));
    };
    Nodes there = after;
    if (gathers && loads && parallel_.offload.on_path) {
      there = gather("load", NodeKind::mem_load, all, after);
    } else {
      Made share{name + "share", own};
      if (loads) {
        there = access(name + "load", NodeKind::mem_load, own, after);
        share.maker = there.back();
      }
      if (gathers) {
        there = gather("all_gather", NodeKind::collective, own, std::move(there));
        hand_over(builder_, share, there.back());
      }
    }
    append(fetched.ready, there);
    fetched.parameters.push_back({name + "all", all, there.back()});
  }
  return fetched;
}

void ModelStates::add_gradients(const Layer& layer, std::uint32_t micro_batch, std::optional<NodeId> begin,
                                const Nodes& after, bool close_all) {
  const std::uint64_t bytes = value_bytes(parallel_.gradients);
  for (const Part& part : parts_of(layer)) {
    Bucket& bucket = part.group == GroupKind::data ? dense_ : experts_;
    std::string name = fmt::format("gradient.{}{}{}", part.prefix,
                                   parallel_.zero >= 2 ? fmt::format("micro_batch_{}.", micro_batch) : "", layer.name);
    if (bucket.parameters == 0) bucket = {part.group, 0, name, {}, {}};
    bucket.parameters += part.parameters;
    bucket.ready = after;
    if (leaves_when_summed(part.group)) bucket.tensors.push_back({std::move(name), part.parameters * bytes, begin});
  }
  for (Bucket* bucket : {&dense_, &experts_})
    if (bucket->parameters > 0 && (close_all || bucket->parameters * bytes >= parallel_.bucket.count())) close(*bucket);
}

bool ModelStates::leaves_when_summed(GroupKind group) const {
  if (parallel_.zero >= 2) return parallel_.offload.gradients || group_size(parallel_, group) > 1;
  return parallel_.offload.gradients && parallel_.micro_batches == 1;
}

void ModelStates::close(Bucket& bucket) {
  if (parallel_.zero == 3 && parallel_.overlap)
    sum(bucket, bucket.ready);
  else
    full_.push_back(bucket);
  bucket = {};
}

void ModelStates::sum(const Bucket& bucket, Nodes after) {
  const bool shards = parallel_.zero > 0, stores = parallel_.offload.gradients;
  const std::uint32_t copies = group_size(parallel_, bucket.group);
  const std::uint64_t bytes = value_bytes(parallel_.gradients), whole = bucket.parameters * bytes;
  const auto collective = shards ? CollectiveKind::reduce_scatter : CollectiveKind::all_reduce;
  std::optional<NodeId> last;  // that needs what is not yet summed
  if (stores && parallel_.offload.on_path) {
    last =
        together(bucket.name + ".store", NodeKind::mem_store, collective, whole, bucket.group, std::move(after)).back();
  } else {
    const Nodes summed = together(bucket.name + (shards ? ".reduce_scatter" : ".all_reduce"), NodeKind::collective,
                                  collective, whole, bucket.group, std::move(after));
    if (copies > 1) last = summed.back();
    if (stores) {
      const bool in_place = !shards || copies == 1;
      const Made part{bucket.name + ".share", share(bucket.parameters, in_place ? 1 : copies) * bytes, last};
      const NodeId stored = access(bucket.name + ".store", NodeKind::mem_store, part.bytes, summed).back();
      if (in_place)
        last = stored;
      else if (!bucket.tensors.empty())
        hand_over(builder_, part, stored);
    }
  }
  for (const Made& tensor : bucket.tensors) hand_over(builder_, tensor, last);
}

void ModelStates::update(const Nodes& after) {
  for (const Bucket& bucket : full_) sum(bucket, parallel_.overlap ? bucket.ready : after);
  tie(after);
  Nodes ready = after;
  append(ready, last_together_);
  append(ready, last_store_);
  std::vector<Nodes> updated;
  for (const Portion& portion : portions()) {
    const std::size_t i = updated.size();
    updated.push_back(update(portion, i <= parallel_.prefetch ? ready : updated[i - 1 - parallel_.prefetch]));
  }
  if (!last_update_ && !ready.empty()) last_update_ = ready.back();
  if (!last_update_) return;
  const Memory local = model_states(parallel_, layers_).local;
  keep(builder_, "parameters", local.parameters, *last_update_);
  keep(builder_, "gradients", local.gradients, *last_update_);
  keep(builder_, "optimizer", local.optimizer, *last_update_);
}

/// First and last stage hold copies of one embedding.
void ModelStates::tie(const Nodes& after) {
  for (const Layer* layer : layers_) {
    if (layer->tied == 0 || group_size(parallel_, GroupKind::embedding) == 1) continue;
    const std::string name = "gradient.embedding.tied";
    Made tensor{name, held({GroupKind::data, layer->tied, ""}, 1) * value_bytes(parallel_.gradients)};
    Nodes there = after;
    if (parallel_.offload.gradients) {
      append(there, last_together_);
      append(there, last_store_);
      there = access(name + ".load", NodeKind::mem_load, tensor.bytes, there);
      tensor.maker = there.back();
    }
    there = together(name + ".all_reduce", NodeKind::collective, CollectiveKind::all_reduce, tensor.bytes,
                     GroupKind::embedding, there);
    if (parallel_.offload.gradients)
      hand_over(builder_, tensor, access(name + ".store", NodeKind::mem_store, tensor.bytes, there).back());
  }
}

/// Loads what the optimizer reads; weights in fp32 are parameters, else they are part of its state. Returns what ends
/// the update.
ModelStates::Nodes ModelStates::update(const Portion& portion, const Nodes& begin) {
  const auto& offload = parallel_.offload;
  const std::uint64_t own = updated_by_npu(portion);
  Nodes loaded;
  const auto load = [&](bool is_remote, std::string_view what, std::uint64_t bytes) {
    Made tensor{fmt::format("{}.{}", portion.name, what), bytes * own};
    if (is_remote && own > 0) {
      append(loaded, access(tensor.name + ".load", NodeKind::mem_load, tensor.bytes, begin));
      tensor.maker = loaded.back();
    }
    return tensor;
  };
  const Made gradients = load(offload.gradients, "gradients", value_bytes(parallel_.gradients));
  const Made state = load(offload.optimizer, "state", optimizer_state_bytes(parallel_.precision));
  Made fresh = load(offload.parameters && parallel_.precision == Precision::fp32, "parameters",
                    value_bytes(parallel_.precision));
  if (loaded.empty()) loaded = begin;
  const auto computed = compute(portion, loaded);
  const Nodes updated = computed ? Nodes{*computed} : loaded;
  hand_over(builder_, gradients, computed);
  if (offload.optimizer && own > 0)
    hand_over(builder_, state, access(state.name + ".store", NodeKind::mem_store, state.bytes, updated).back());
  if (!fresh.maker) fresh.maker = computed;
  give(portion, updated, fresh);
  return updated;
}

/// Layers may say what the optimizer takes for them; the others' parameters do.
std::optional<NodeId> ModelStates::compute(const Portion& portion, const Nodes& after) {
  std::optional<Time> given;
  std::uint64_t own = 0;
  for (const Layer* const& layer : portion.layers)
    if (layer->update)
      given = given.value_or(Time::zero()) + *layer->update;
    else
      own += updated_by_npu({"", std::span(&layer, 1)});
  if (own == 0 && given == Time::zero()) return {};
  last_update_ = builder_.compute(portion.name, optimizer_flops * own, Bytes(optimizer_traffic(parallel_) * own), after,
                                  given.value_or(Time::zero()));
  return last_update_;
}

/// New parameters, to those who have not computed them and to where they are kept.
void ModelStates::give(const Portion& portion, const Nodes& after, const Made& fresh) {
  const std::uint64_t bytes = value_bytes(parallel_.precision);
  const bool shares = parallel_.zero == 1 || parallel_.zero == 2;
  std::optional<NodeId> last;  // that needs what the NPU has computed
  for (const Layer* layer : portion.layers)
    for (const Part& part : parts_of(*layer)) {
      const std::string name = fmt::format("parameters.{}{}", part.prefix, layer->name);
      const std::uint32_t copies = group_size(parallel_, part.group);
      Nodes there = after;
      if (shares)
        there = together(name + ".all_gather", NodeKind::collective, CollectiveKind::all_gather, held(part, 1) * bytes,
                         part.group, there);
      if (!parallel_.offload.parameters) continue;
      const NodeId stored = access(name + ".store", NodeKind::mem_store, held(part, 3) * bytes, there).back();
      const bool gathered = shares && copies > 1;
      if (gathered) hand_over(builder_, {name, held(part, 1) * copies * bytes, there.back()}, stored);
      last = gathered ? there.back() : stored;
    }
  hand_over(builder_, fresh, last);
}

}  // namespace orrery::workload
