#include "model_states.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "operators.hpp"

namespace orrery::workload {

using trace::CollectiveKind;
using trace::NodeKind;

namespace {

constexpr std::uint64_t optimizer_flops = 12;  ///< FLOPs of Adam, for each parameter

/// Returns the bytes that Adam moves for each parameter: it reads the gradient, reads and writes its state, and writes
/// the parameter.
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

/// Returns the communicator of sums apart. Members order their collectives in each communicator alike.
GroupKind communicator_of_sums(GroupKind group) {
  if (group == GroupKind::data) return GroupKind::data_sums;
  return group == GroupKind::expert_data ? GroupKind::expert_data_sums : group;
}

}  // namespace

MemoryUses model_states(const Parallel& parallel, std::span<const Layer* const> layers) {
  std::uint64_t dense = 0, experts = 0, sharded = 0;
  for (const Layer* layer : layers) {
    dense += layer->dense;
    experts += layer->experts;
    sharded += layer->sharded;
  }
  const auto held = [&](std::uint32_t zero) {
    if (parallel.sharding.zero < zero) return dense + experts;
    return share(dense, group_size(parallel, GroupKind::data)) +
           share(experts, group_size(parallel, GroupKind::expert_data));
  };
  const std::uint64_t parameter = value_bytes(parallel.precision), gradient = value_bytes(parallel.gradients);
  const auto& offload = parallel.sharding.offload;
  MemoryUses uses;
  if (parallel.is_inference()) {
    uses.local.parameters = operand_bytes(parallel.precision, dense + experts);
    for (const Layer* layer : layers) uses.local.cache += layer->cache * parallel.micro_batches;
    return uses;
  }
  uses.local.parameters = parameter * sharded;
  (offload.parameters ? uses.remote : uses.local).parameters += parameter * held(3);
  if (offload.gradients) uses.remote.gradients = gradient * held(1);
  if (!offload.gradients || (parallel.sharding.zero < 2 && parallel.micro_batches > 1))
    uses.local.gradients = gradient * held(2);
  (offload.optimizer ? uses.remote : uses.local).optimizer = optimizer_state_bytes(parallel.precision) * held(1);
  return uses;
}

std::uint64_t optimizer_state_bytes(Precision precision) { return precision == Precision::fp32 ? 8 : 12; }

std::vector<ModelStates::ParameterGroup> ModelStates::groups_of(const Layer& layer) {
  std::vector<ParameterGroup> groups;
  if (layer.dense > 0) groups.push_back({GroupKind::data, layer.dense, ""});
  if (layer.experts > 0) groups.push_back({GroupKind::expert_data, layer.experts, "experts."});
  return groups;
}

/// Layers are updated one by one if something is in remote memory, else all at once.
std::vector<ModelStates::UpdateUnit> ModelStates::update_units() const {
  if (!sharding_.offload.any()) return {{"optimizer", layers_}};
  std::vector<UpdateUnit> units;
  for (const Layer* const& layer : layers_)
    if (layer->update || !groups_of(*layer).empty())
      units.push_back({fmt::format("optimizer.{}", layer->name), std::span(&layer, 1)});
  return units;
}

std::uint64_t ModelStates::held(const ParameterGroup& group, std::uint32_t stage) const {
  return sharding_.zero >= stage ? share(group.parameters, group_size(parallel_, group.kind)) : group.parameters;
}

std::uint64_t ModelStates::updated_by_npu(const UpdateUnit& unit) const {
  std::uint64_t own = 0;
  for (const Layer* layer : unit.layers)
    for (const ParameterGroup& group : groups_of(*layer)) own += held(group, 1);
  return own;
}

/// Accesses hold a communication stream while they wait for others, so those on the path keep to one chain.
ModelStates::Chain& ModelStates::sums() {
  const bool on_path = sharding_.offload.gradients && sharding_.offload.on_path;
  return sharding_.zero == 3 && sharding_.sums_apart && !on_path ? apart_ : among_copies_;
}

ModelStates::Nodes ModelStates::add_among_copies(std::string name, NodeKind kind, CollectiveKind collective,
                                                 std::uint64_t bytes, GroupKind group, Nodes after, Chain& chain) {
  if (&chain == &apart_) group = communicator_of_sums(group);
  const auto number = static_cast<std::uint32_t>(group);
  if (group_size(parallel_, group) == 1)
    return kind == NodeKind::collective ? after : add_access(std::move(name), kind, bytes, std::move(after));
  append(after, chain.last);
  if (kind == NodeKind::collective)
    chain.last = builder_.collective(std::move(name), collective, Bytes(bytes), number, after, chain.priority);
  else
    chain.last = builder_.access(std::move(name), kind, Bytes(bytes), collective, number, after);
  return {*chain.last};
}

ModelStates::Nodes ModelStates::add_calls(const std::string& name, CollectiveKind collective, std::uint64_t bytes,
                                          GroupKind group, Nodes after, Chain& chain) {
  const std::uint32_t members = group_size(parallel_, group);
  const Calls calls = sharding_.zero == 3 && members > 1 ? sharding_.calls : Calls();
  const Time host = calls.each + calls.of_member * members;
  for (std::uint32_t part = 0; part < calls.of_layer; ++part) {
    const std::uint64_t own = bytes / calls.of_layer + (part < bytes % calls.of_layer ? 1 : 0);
    if (own == 0 && part > 0) break;
    const std::string of_part = calls.of_layer == 1 ? name : fmt::format("{}.{}", name, part);
    if (host > Time::zero()) after = {builder_.compute(of_part + ".call", 0, Bytes(0), std::move(after), host)};
    after = add_among_copies(of_part, NodeKind::collective, collective, own, group, std::move(after), chain);
  }
  return after;
}

ModelStates::Nodes ModelStates::add_access(std::string name, NodeKind kind, std::uint64_t bytes, Nodes after) {
  if (bytes == 0) return after;
  auto& last = kind == NodeKind::mem_load ? last_load_ : last_store_;
  append(after, last);
  last = builder_.access(std::move(name), kind, Bytes(bytes), after);
  return {*last};
}

ModelStates::Fetched ModelStates::fetch_parameters(const Layer& layer, const std::string& pass, const Nodes& after) {
  Fetched fetched;
  for (const ParameterGroup& group : groups_of(layer)) {
    const std::uint32_t copies = group_size(parallel_, group.kind);
    const bool gathers = sharding_.zero == 3 && copies > 1, loads = sharding_.offload.parameters;
    if (!gathers && !loads) continue;
    const std::uint64_t own = held(group, 3) * value_bytes(parallel_.precision), all = gathers ? own * copies : own;
    const std::string name = fmt::format("{}.parameters.{}", pass, group.prefix);
    const auto gather = [&](std::string_view what, NodeKind kind, std::uint64_t bytes, Nodes from) {
      return add_among_copies(fmt::format("{}{}", name, what), kind, CollectiveKind::all_gather, bytes, group.kind,
                              std::move(from), among_copies_);
    };
    Nodes there = after;
    if (gathers && loads && sharding_.offload.on_path) {
      there = gather("load", NodeKind::mem_load, all, after);
    } else {
      MadeTensor share{name + "share", own};
      if (loads) {
        there = add_access(name + "load", NodeKind::mem_load, own, after);
        share.maker = there.back();
      }
      if (gathers) {
        there = add_calls(name + "all_gather", CollectiveKind::all_gather, own - rest_of(own), group.kind,
                          std::move(there), among_copies_);
        list_until(builder_, share, there.back());
      }
    }
    append(fetched.ready, there);
    fetched.parameters.push_back({name + "all", all, there.back()});
  }
  return fetched;
}

ModelStates::Nodes ModelStates::fetch_rest(const Layer& layer, const std::string& pass, const Nodes& after) {
  Nodes there;
  if (sharding_.zero < 3) return there;
  for (const ParameterGroup& group : groups_of(layer))
    if (const std::uint64_t bytes = rest_of(held(group, 3) * value_bytes(parallel_.precision));
        bytes > 0 && group_size(parallel_, group.kind) > 1)
      append(there,
             add_among_copies(fmt::format("{}.parameters.{}all_gather.rest", pass, group.prefix), NodeKind::collective,
                              CollectiveKind::all_gather, bytes, group.kind, after, among_copies_));
  return there;
}

void ModelStates::gather_updated(const Layer& layer, const Nodes& after) {
  Nodes& there = updated_[&layer];
  for (const ParameterGroup& group : groups_of(layer))
    if (group_size(parallel_, group.kind) > 1)
      append(there,
             add_among_copies(fmt::format("parameters.{}{}.all_gather", group.prefix, layer.name), NodeKind::collective,
                              CollectiveKind::all_gather, held(group, 1) * value_bytes(parallel_.precision), group.kind,
                              after, among_copies_));
}

void ModelStates::add_gradients(const Layer& layer, std::uint32_t micro_batch, std::optional<NodeId> begin,
                                const Nodes& after, std::uint64_t full) {
  const std::uint64_t bytes = value_bytes(parallel_.gradients);
  for (const ParameterGroup& group : groups_of(layer)) {
    Bucket& bucket = group.kind == GroupKind::data ? dense_ : experts_;
    std::string name = fmt::format("gradient.{}{}{}", group.prefix,
                                   sharding_.zero >= 2 ? fmt::format("micro_batch_{}.", micro_batch) : "", layer.name);
    if (bucket.parameters == 0) bucket = {group.kind, 0, name, {}, {}, &layer};
    bucket.parameters += group.parameters;
    bucket.ready = after;
    if (leaves_when_reduced(group.kind)) bucket.tensors.push_back({std::move(name), group.parameters * bytes, begin});
  }
  for (Bucket* bucket : {&dense_, &experts_})
    if (bucket->parameters > 0 && bucket->parameters * bytes >= full) close(*bucket);
}

bool ModelStates::leaves_when_reduced(GroupKind group) const {
  if (sharding_.zero >= 2) return sharding_.offload.gradients || group_size(parallel_, group) > 1;
  return sharding_.offload.gradients && parallel_.micro_batches == 1;
}

void ModelStates::close(Bucket& bucket) {
  if (sharding_.zero < 2) {
    full_.push_back(bucket);
    bucket = {};
    return;
  }
  if (sharding_.zero == 3 && sharding_.overlap) {
    const std::uint64_t rest = rest_of(bucket.parameters);
    if (rest > 0 && group_size(parallel_, bucket.group) > 1) {
      reduce({bucket.group, rest, bucket.name + ".rest", {}, {}, bucket.first_layer}, bucket.ready, among_copies_);
      append(awaited_.exposed, among_copies_.last);
      // The two sums over replicas take turns; all members need one order.
      if (&sums() == &apart_) append(bucket.ready, among_replicas_.last);
      bucket.parameters -= rest;
    }
  }
  wait_for_buffer(bucket.group, reduce(bucket, bucket.ready, sums()));
  bucket = {};
}

void ModelStates::wait_for_buffer(GroupKind group, std::optional<NodeId> freed) {
  const std::size_t buffers = sharding_.overlap ? sharding_.bucket_buffers : 1;
  if (!freed || buffers == 0) return;
  std::deque<NodeId>& in_use = awaited_.in_use[group];
  in_use.push_back(*freed);
  if (in_use.size() < buffers) return;
  awaited_.for_buffers.push_back(in_use.front());
  in_use.pop_front();
}

std::optional<NodeId> ModelStates::reduce(const Bucket& bucket, Nodes after, Chain& chain) {
  const bool shards = sharding_.zero > 0, stores = sharding_.offload.gradients;
  const std::uint32_t copies = group_size(parallel_, bucket.group);
  const std::uint64_t bytes = value_bytes(parallel_.gradients), whole = bucket.parameters * bytes;
  const auto collective = shards ? CollectiveKind::reduce_scatter : CollectiveKind::all_reduce;
  std::optional<NodeId> last;  // the last node that needs gradients which are not reduced
  if (stores && sharding_.offload.on_path) {
    last = add_among_copies(bucket.name + ".store", NodeKind::mem_store, collective, whole, bucket.group,
                            std::move(after), chain)
               .back();
  } else {
    Nodes reduced = add_calls(bucket.name + (shards ? ".reduce_scatter" : ".all_reduce"), collective, whole,
                              bucket.group, std::move(after), chain);
    if (copies > 1) last = reduced.back();
    reduced = sum_over_replicas(bucket, std::move(reduced));
    if (stores) {
      const bool in_place = !shards || copies == 1;
      const MadeTensor own_share{bucket.name + ".share", share(bucket.parameters, in_place ? 1 : copies) * bytes, last};
      const NodeId stored = add_access(bucket.name + ".store", NodeKind::mem_store, own_share.bytes, reduced).back();
      if (in_place)
        last = stored;
      else if (!bucket.tensors.empty())
        list_until(builder_, own_share, stored);
    }
  }
  for (const MadeTensor& tensor : bucket.tensors) list_until(builder_, tensor, last);
  return last;
}

ModelStates::Nodes ModelStates::sum_over_replicas(const Bucket& bucket, Nodes after) {
  if (group_size(parallel_, GroupKind::replicas) == 1) return after;
  const std::uint64_t own = share(bucket.parameters, group_size(parallel_, bucket.group));
  among_replicas_.priority = sums().priority;
  return add_among_copies(bucket.name + ".replicas.all_reduce", NodeKind::collective, CollectiveKind::all_reduce,
                          own * value_bytes(parallel_.gradients), GroupKind::replicas, std::move(after),
                          among_replicas_);
}

void ModelStates::update(const Nodes& after) {
  // Two stages that hold the same layers close their buckets in different orders; the members of a group need one.
  if (parallel_.is_mirrored()) std::ranges::stable_sort(full_, {}, &Bucket::first_layer);
  for (const Bucket& bucket : full_) reduce(bucket, sharding_.overlap ? bucket.ready : after, sums());
  reduce_tied_embedding(after);
  Nodes ready = after;
  for (const Chain* chain : {&among_copies_, &apart_, &among_replicas_}) append(ready, chain->last);
  append(ready, last_store_);
  if (sharding_.norm_sums) ready = sum_norms(std::move(ready));
  std::vector<Nodes> updated;
  for (const UpdateUnit& unit : update_units()) {
    const std::size_t i = updated.size();
    updated.push_back(update(unit, i <= sharding_.prefetch ? ready : updated[i - 1 - sharding_.prefetch]));
  }
  if (!last_update_ && !ready.empty()) last_update_ = ready.back();
  if (!last_update_) return;
  const MemoryUse local = model_states(parallel_, layers_).local;
  list_throughout(builder_, "parameters", local.parameters, *last_update_);
  list_throughout(builder_, "gradients", local.gradients, *last_update_);
  list_throughout(builder_, "optimizer", local.optimizer, *last_update_);
}

/// With sequence parallelism each NPU of a tp group has gradients of norms of its own tokens only. The norm of all
/// gradients, by which they are scaled, is one number.
ModelStates::Nodes ModelStates::sum_norms(Nodes after) {
  std::uint64_t norms = 0;
  for (const Layer* layer : layers_) norms += layer->of_dense.norms;
  const auto add_sum = [&](const char* name, std::uint64_t bytes, GroupKind group) {
    if (bytes == 0 || group_size(parallel_, group) == 1) return;
    after = {
        builder_.collective(name, CollectiveKind::all_reduce, Bytes(bytes), static_cast<std::uint32_t>(group), after)};
  };
  if (parallel_.sequence_parallel)
    add_sum("gradient.norms.all_reduce", norms * value_bytes(parallel_.gradients), GroupKind::tensor);
  add_sum("gradient.norm_of_all.all_reduce", sizeof(float), GroupKind::all);
  return after;
}

/// The first and the last stage hold copies of one embedding.
void ModelStates::reduce_tied_embedding(const Nodes& after) {
  for (const Layer* layer : layers_) {
    if (layer->of_dense.tied == 0 || group_size(parallel_, GroupKind::embedding) == 1) continue;
    const std::string name = "gradient.embedding.tied";
    MadeTensor tensor{name, held({GroupKind::data, layer->of_dense.tied, ""}, 1) * value_bytes(parallel_.gradients)};
    Nodes there = after;
    if (sharding_.offload.gradients) {
      append(there, among_copies_.last);
      append(there, last_store_);
      there = add_access(name + ".load", NodeKind::mem_load, tensor.bytes, there);
      tensor.maker = there.back();
    }
    there = add_among_copies(name + ".all_reduce", NodeKind::collective, CollectiveKind::all_reduce, tensor.bytes,
                             GroupKind::embedding, there, sums());
    if (sharding_.offload.gradients)
      list_until(builder_, tensor, add_access(name + ".store", NodeKind::mem_store, tensor.bytes, there).back());
  }
}

/// Loads what the optimizer reads: fp32 weights are parameters if those are fp32, else a part of its state.
ModelStates::Nodes ModelStates::update(const UpdateUnit& unit, const Nodes& begin) {
  const auto& offload = sharding_.offload;
  const std::uint64_t own = updated_by_npu(unit);
  Nodes loaded;
  const auto load = [&](bool is_remote, std::string_view what, std::uint64_t bytes) {
    MadeTensor tensor{fmt::format("{}.{}", unit.name, what), bytes * own};
    if (is_remote && own > 0) {
      append(loaded, add_access(tensor.name + ".load", NodeKind::mem_load, tensor.bytes, begin));
      tensor.maker = loaded.back();
    }
    return tensor;
  };
  const MadeTensor gradients = load(offload.gradients, "gradients", value_bytes(parallel_.gradients));
  const MadeTensor state = load(offload.optimizer, "state", optimizer_state_bytes(parallel_.precision));
  MadeTensor fresh = load(offload.parameters && parallel_.precision == Precision::fp32, "parameters",
                          value_bytes(parallel_.precision));
  if (loaded.empty()) loaded = begin;
  const auto computed = add_optimizer(unit, loaded);
  const Nodes updated = computed ? Nodes{*computed} : loaded;
  list_until(builder_, gradients, computed);
  if (offload.optimizer && own > 0)
    list_until(builder_, state, add_access(state.name + ".store", NodeKind::mem_store, state.bytes, updated).back());
  if (!fresh.maker) fresh.maker = computed;
  distribute(unit, updated, fresh);
  return updated;
}

/// A layer may give the optimizer's time for it; otherwise its parameters say how much the optimizer does.
std::optional<NodeId> ModelStates::add_optimizer(const UpdateUnit& unit, const Nodes& after) {
  std::optional<Time> given;
  std::uint64_t own = 0;
  for (const Layer* const& layer : unit.layers)
    if (layer->update)
      given = given.value_or(Time::zero()) + *layer->update;
    else
      own += updated_by_npu({"", std::span(&layer, 1)});
  if (own == 0 && given == Time::zero()) return {};
  last_update_ = builder_.compute(unit.name, optimizer_flops * own, Bytes(optimizer_traffic(parallel_) * own), after,
                                  given.value_or(Time::zero()));
  return last_update_;
}

/// Each tensor of a layer is broadcast by its owner, one after the other: those of its products, two norms of a block.
/// The first part of a tensor passes all members in turn, which takes each of them a time (Sharding::calls).
ModelStates::Nodes ModelStates::broadcast_by_owners(const Layer& layer, const ParameterGroup& group,
                                                    const std::string& name, Nodes after) {
  const auto products = static_cast<std::uint64_t>(
      std::ranges::count_if(layer.forward, [](const Operator& op) { return op.has_weights; }));
  const std::uint64_t tensors = std::max<std::uint64_t>(1, layer.is_beside_blocks ? products : products + 2);
  const std::uint32_t members = group_size(parallel_, group.kind);
  const Time passing = members > 1 ? sharding_.calls.each + sharding_.calls.of_member * members : Time::zero();
  for (std::uint64_t i = 0; i < tensors; ++i) {
    const std::string of_tensor = fmt::format("{}.broadcast.{}", name, i);
    if (passing > Time::zero()) after = {builder_.compute(of_tensor + ".call", 0, Bytes(0), std::move(after), passing)};
    after = add_among_copies(of_tensor, NodeKind::collective, CollectiveKind::broadcast,
                             share(group.parameters, tensors) * value_bytes(parallel_.precision), group.kind,
                             std::move(after), among_copies_);
  }
  return after;
}

/// Brings new parameters to the NPUs that have not computed them and to the memory that keeps them.
void ModelStates::distribute(const UpdateUnit& unit, const Nodes& after, const MadeTensor& fresh) {
  const std::uint64_t bytes = value_bytes(parallel_.precision);
  const bool shares = (sharding_.zero == 1 || sharding_.zero == 2) && !sharding_.gather_before_forward;
  std::optional<NodeId> last;  // the last node that needs what the NPU has computed
  for (const Layer* layer : unit.layers)
    for (const ParameterGroup& group : groups_of(*layer)) {
      const std::string name = fmt::format("parameters.{}{}", group.prefix, layer->name);
      const std::uint32_t copies = group_size(parallel_, group.kind);
      Nodes there = after;
      if (shares)
        there = sharding_.owners_broadcast
                    ? broadcast_by_owners(*layer, group, name, there)
                    : add_among_copies(name + ".all_gather", NodeKind::collective, CollectiveKind::all_gather,
                                       held(group, 1) * bytes, group.kind, there, among_copies_);
      if (!sharding_.offload.parameters) continue;
      const NodeId stored = add_access(name + ".store", NodeKind::mem_store, held(group, 3) * bytes, there).back();
      const bool gathered = shares && copies > 1;
      if (gathered) list_until(builder_, {name, held(group, 1) * copies * bytes, there.back()}, stored);
      last = gathered ? there.back() : stored;
    }
  list_until(builder_, fresh, last);
}

}  // namespace orrery::workload
