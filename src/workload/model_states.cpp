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

ModelStates::Nodes ModelStates::fetch(const Layer& layer, const std::string& pass, const Nodes& after) {
  Nodes fetched;
  for (const Part& part : parts_of(layer)) {
    const std::uint32_t copies = group_size(parallel_, part.group);
    const bool gathers = parallel_.zero == 3 && copies > 1, loads = parallel_.offload.parameters;
    const std::uint64_t own = held(part, 3) * value_bytes(parallel_.precision);
    const std::string name = fmt::format("{}.parameters.{}", pass, part.prefix);
    if (gathers && loads && parallel_.offload.on_path) {
      append(fetched,
             together(name + "load", NodeKind::mem_load, CollectiveKind::all_gather, own * copies, part.group, after));
      continue;
    }
    if (!gathers && !loads) continue;
    Nodes there = loads ? access(name + "load", NodeKind::mem_load, own, after) : after;
    if (gathers)
      there = together(name + "all_gather", NodeKind::collective, CollectiveKind::all_gather, own, part.group,
                       std::move(there));
    append(fetched, there);
  }
  return fetched;
}

void ModelStates::add_gradients(const Layer& layer, std::uint32_t micro_batch, const Nodes& after, bool close_all) {
  for (const Part& part : parts_of(layer)) {
    Bucket& bucket = part.group == GroupKind::data ? dense_ : experts_;
    if (bucket.parameters == 0)
      bucket = {part.group,
                0,
                fmt::format("gradient.{}{}{}", part.prefix,
                            parallel_.zero >= 2 ? fmt::format("micro_batch_{}.", micro_batch) : "", layer.name),
                {}};
    bucket.parameters += part.parameters;
    bucket.ready = after;
  }
  for (Bucket* bucket : {&dense_, &experts_})
    if (bucket->parameters > 0 &&
        (close_all || bucket->parameters * value_bytes(parallel_.gradients) >= parallel_.bucket.count()))
      close(*bucket);
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
  const std::uint64_t bytes = value_bytes(parallel_.gradients), whole = bucket.parameters * bytes;
  const auto collective = shards ? CollectiveKind::reduce_scatter : CollectiveKind::all_reduce;
  if (stores && parallel_.offload.on_path) {
    together(bucket.name + ".store", NodeKind::mem_store, collective, whole, bucket.group, std::move(after));
    return;
  }
  after = together(bucket.name + (shards ? ".reduce_scatter" : ".all_reduce"), NodeKind::collective, collective, whole,
                   bucket.group, std::move(after));
  if (stores) {
    const std::uint64_t own = share(bucket.parameters, shards ? group_size(parallel_, bucket.group) : 1);
    access(bucket.name + ".store", NodeKind::mem_store, own * bytes, std::move(after));
  }
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
    const Nodes& begin = i <= parallel_.prefetch ? ready : updated[i - 1 - parallel_.prefetch];
    updated.push_back(compute(portion, load_states(portion, begin)));
    keep(portion, updated.back());
  }
}

/// First and last stage hold copies of one embedding.
void ModelStates::tie(const Nodes& after) {
  for (const Layer* layer : layers_) {
    if (layer->tied == 0 || group_size(parallel_, GroupKind::embedding) == 1) continue;
    const std::string name = "gradient.embedding.tied.";
    const std::uint64_t bytes = held({GroupKind::data, layer->tied, ""}, 1) * value_bytes(parallel_.gradients);
    Nodes there = after;
    if (parallel_.offload.gradients) {
      append(there, last_together_);
      append(there, last_store_);
      there = access(name + "load", NodeKind::mem_load, bytes, there);
    }
    there = together(name + "all_reduce", NodeKind::collective, CollectiveKind::all_reduce, bytes, GroupKind::embedding,
                     there);
    if (parallel_.offload.gradients) access(name + "store", NodeKind::mem_store, bytes, there);
  }
}

/// What the optimizer reads. Weights in fp32 are parameters, else they are part of its state.
ModelStates::Nodes ModelStates::load_states(const Portion& portion, const Nodes& after) {
  const auto& offload = parallel_.offload;
  const std::uint64_t own = updated_by_npu(portion);
  Nodes loaded;
  const auto load = [&](std::string_view what, std::uint64_t bytes) {
    append(loaded, access(fmt::format("{}.{}.load", portion.name, what), NodeKind::mem_load, bytes * own, after));
  };
  if (offload.gradients) load("gradients", value_bytes(parallel_.gradients));
  if (offload.optimizer) load("state", optimizer_state_bytes(parallel_.precision));
  if (offload.parameters && parallel_.precision == Precision::fp32)
    load("parameters", value_bytes(parallel_.precision));
  return loaded.empty() ? after : loaded;
}

/// Layers may say what the optimizer takes for them; the others' parameters do.
ModelStates::Nodes ModelStates::compute(const Portion& portion, const Nodes& after) {
  std::optional<Time> given;
  std::uint64_t own = 0;
  for (const Layer* const& layer : portion.layers)
    if (layer->update)
      given = given.value_or(Time::zero()) + *layer->update;
    else
      own += updated_by_npu({"", std::span(&layer, 1)});
  if (own == 0 && given == Time::zero()) return after;
  return {builder_.compute(portion.name, optimizer_flops * own, Bytes(optimizer_traffic(parallel_) * own), after,
                           given.value_or(Time::zero()))};
}

/// Stores the optimizer's state; gives new parameters to those who have not computed them, and stores what each keeps.
void ModelStates::keep(const Portion& portion, const Nodes& after) {
  if (parallel_.offload.optimizer)
    access(portion.name + ".state.store", NodeKind::mem_store,
           optimizer_state_bytes(parallel_.precision) * updated_by_npu(portion), after);
  for (const Layer* layer : portion.layers)
    for (const Part& part : parts_of(*layer)) {
      const std::string name = fmt::format("parameters.{}{}", part.prefix, layer->name);
      const std::uint64_t bytes = value_bytes(parallel_.precision);
      Nodes there = after;
      if (parallel_.zero == 1 || parallel_.zero == 2)
        there = together(name + ".all_gather", NodeKind::collective, CollectiveKind::all_gather, held(part, 1) * bytes,
                         part.group, there);
      if (parallel_.offload.parameters) access(name + ".store", NodeKind::mem_store, held(part, 3) * bytes, there);
    }
}

}  // namespace orrery::workload
