#include "step.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <optional>

#include "ops.hpp"
#include "schedule.hpp"

namespace orrery::workload {
namespace {

using trace::CollectiveKind;

constexpr std::uint64_t optimizer_flops = 12;  // of Adam, for each parameter

/// Bytes that Adam moves for each parameter: it reads the gradient, reads and writes its state, writes the parameter.
std::uint64_t optimizer_traffic(const Parallel& parallel) {
  const std::uint64_t weights = value_bytes(parallel.precision) * (parallel.precision == Precision::fp32 ? 2 : 1);
  return value_bytes(parallel.gradients) + 2 * optimizer_state_bytes(parallel.precision) + weights;
}

/// Gradients that are summed together.
struct Bucket {
  GroupKind group{};
  std::uint64_t parameters = 0;
  std::string name;           ///< of the layers
  std::vector<NodeId> ready;  ///< after these
};

/// Makes the nodes of one NPU. Passes form a chain: each node waits for the one before it. Beside it are sends, which
/// nothing waits for; collectives aside, up to their join; and a second chain, of the collectives that keep copies of
/// parameters equal, so that all members do them in one order whenever they are ready.
class Author {
 public:
  Author(const Parallel& parallel, std::span<const std::span<const Layer>> dealt, std::uint32_t stage)
      : parallel_(parallel), dealt_(dealt), stage_(stage) {}

  trace::Structure write(Time late) {
    if (late > Time::zero()) extend(builder_.compute("late", 0, Bytes(0), {}, late));
    const auto passes = passes_of(parallel_, stage_);
    for (const Pass& pass : passes) list_visits(pass);
    for (const Pass& pass : passes) run(pass);
    update();
    return builder_.finish();
  }

 private:
  /// A layer in a pass.
  struct Visit {
    Pass pass;
    const Layer* layer;
  };

  std::uint32_t virtual_stage(const Pass& pass) const { return pass.chunk * parallel_[Axis::pp] + stage_; }
  std::uint32_t neighbour(bool next) const {
    const std::uint32_t pp = parallel_[Axis::pp];
    return (stage_ + (next ? 1 : pp - 1)) % pp;
  }

  void list_visits(const Pass& pass) {
    const auto layers = dealt_[virtual_stage(pass)];
    for (std::size_t k = 0; k < layers.size(); ++k)
      visits_.push_back({pass, &layers[pass.forward ? k : layers.size() - 1 - k]});
  }

  void run(const Pass& pass) {
    receive(pass);
    for (std::size_t k = dealt_[virtual_stage(pass)].size(); k > 0; --k) {
      visit(visits_.front());
      visits_.pop_front();
    }
    flush();
    send(pass);
  }

  // ---- the chain ----

  void extend(NodeId node) { after_ = {node}; }
  void join() {
    after_.insert(after_.end(), aside_.begin(), aside_.end());
    aside_.clear();
  }
  /// What has been gathered of compute operators becomes a node.
  void flush() {
    if (pending_.flops + pending_.bytes > 0 || pending_.duration > Time::zero())
      extend(
          builder_.compute(std::move(pending_name_), pending_.flops, Bytes(pending_.bytes), after_, pending_.duration));
    pending_ = {};
    pending_name_.clear();
  }
  void compute(const Op& op, const std::string& prefix) {
    // Names of a stretch of operators end where their parts do: "attention", not "attention.qkv".
    const bool fine = parallel_.detail == Detail::op;
    if (fine) flush();
    const std::string_view name(op.name);
    if (!has_product()) pending_name_ = fmt::format("{}.{}", prefix, fine ? name : name.substr(0, name.find('.')));
    pending_.flops += op.flops;
    pending_.bytes += op.bytes;
    pending_.duration += op.duration;
  }
  bool has_product() const { return pending_.flops > 0 || pending_.duration > Time::zero(); }
  /// Operators without FLOPs go with the products after them, across communication, so that a block is one node.
  void flush_products() {
    if (has_product() || parallel_.detail == Detail::op) flush();
  }
  void execute(const std::vector<Op>& ops, const std::string& prefix) {
    for (const Op& op : ops) {
      if (op.kind == Op::Kind::compute) {
        compute(op, prefix);
        continue;
      }
      if (op.kind == Op::Kind::join && aside_.empty()) continue;
      flush_products();
      if (op.kind == Op::Kind::join) {
        join();
        continue;
      }
      const NodeId node = builder_.collective(fmt::format("{}.{}", prefix, op.name), op.collective, Bytes(op.bytes),
                                              static_cast<std::uint32_t>(op.group), after_);
      if (op.kind == Op::Kind::aside)
        aside_.push_back(node);
      else
        extend(node);
    }
  }

  void visit(const Visit& visit) {
    const Layer& layer = *visit.layer;
    if (parallel_.zero == 3) gather_parameters();
    execute(visit.pass.forward ? layer.forward : layer.backward,
            fmt::format("{}.micro_batch_{}.{}", visit.pass.forward ? "forward" : "backward", visit.pass.micro_batch,
                        layer.name));
    flush_products();
    if (visit.pass.forward) return;
    const bool last = visit.pass.micro_batch + 1 == parallel_.micro_batches;
    if (last || parallel_.zero >= 2) add_gradients(layer, visit.pass);
  }

  /// Of activations from the virtual stage before, or of their gradients from the one after.
  void receive(const Pass& pass) {
    const std::uint32_t here = virtual_stage(pass);
    if (here == (pass.forward ? 0 : dealt_.size() - 1)) return;
    const std::uint32_t boundary = pass.forward ? here - 1 : here;
    extend(builder_.receive(message_name("receive", pass), neighbour(!pass.forward), tag(pass, boundary),
                            Bytes(dealt_[boundary].back().output), after_));
  }
  void send(const Pass& pass) {
    const std::uint32_t here = virtual_stage(pass);
    if (here == (pass.forward ? dealt_.size() - 1 : 0)) return;
    const std::uint32_t boundary = pass.forward ? here : here - 1;
    builder_.send(message_name("send", pass), neighbour(pass.forward), tag(pass, boundary),
                  Bytes(dealt_[boundary].back().output), after_);
  }
  static std::uint64_t tag(const Pass& pass, std::uint32_t boundary) { return 2 * boundary + (pass.forward ? 0 : 1); }
  std::string message_name(std::string_view what, const Pass& pass) const {
    return fmt::format("{}.{}.micro_batch_{}{}", what, pass.forward ? "forward" : "backward", pass.micro_batch,
                       parallel_.interleaving > 1 ? fmt::format(".chunk_{}", pass.chunk) : "");
  }

  // ---- copies of parameters ----

  /// A collective of the second chain.
  NodeId align(std::string name, CollectiveKind kind, std::uint64_t bytes, GroupKind group,
               std::vector<NodeId> dependencies) {
    if (last_aligned_) dependencies.push_back(*last_aligned_);
    last_aligned_ =
        builder_.collective(std::move(name), kind, Bytes(bytes), static_cast<std::uint32_t>(group), dependencies);
    return *last_aligned_;
  }

  /// ZeRO 3: the parameters of the visits up to `prefetch` ahead of this one; this one waits for its own.
  void gather_parameters() {
    for (; gathered_.size() <= parallel_.prefetch && gathered_.size() < visits_.size();) {
      const Visit& ahead = visits_[gathered_.size()];
      const std::string name = fmt::format("{}.micro_batch_{}.{}", ahead.pass.forward ? "forward" : "backward",
                                           ahead.pass.micro_batch, ahead.layer->name);
      std::vector<NodeId> nodes;
      const auto gather = [&](GroupKind group, std::uint64_t parameters, std::string_view what) {
        const std::uint32_t size = group_size(parallel_, group);
        if (size == 1 || parameters == 0) return;
        nodes.push_back(align(fmt::format("{}.{}.all_gather", name, what), CollectiveKind::all_gather,
                              share(parameters, size) * value_bytes(parallel_.precision), group, after_));
      };
      gather(GroupKind::data, ahead.layer->dense, "parameters");
      gather(GroupKind::expert_data, ahead.layer->experts, "experts");
      gathered_.push_back(std::move(nodes));
    }
    after_.insert(after_.end(), gathered_.front().begin(), gathered_.front().end());
    gathered_.pop_front();
  }

  void add_gradients(const Layer& layer, const Pass& pass) {
    fill(dense_, GroupKind::data, layer.dense, layer, pass);
    fill(experts_, GroupKind::expert_data, layer.experts, layer, pass);
    const Layer* const last = &dealt_[virtual_stage(pass)].front();
    const bool pass_ends = &layer == last;
    const bool all_done = pass_ends && (parallel_.zero >= 2 || visits_.size() == 1);
    for (Bucket* bucket : {&dense_, &experts_})
      if (bucket->parameters > 0 &&
          (all_done || bucket->parameters * value_bytes(parallel_.gradients) >= parallel_.bucket.count()))
        close(*bucket);
  }
  void fill(Bucket& bucket, GroupKind group, std::uint64_t parameters, const Layer& layer, const Pass& pass) {
    if (parameters == 0) return;
    if (bucket.parameters == 0) {
      bucket.group = group;
      bucket.name = group == GroupKind::data ? "gradient." : "gradient.experts.";
      if (parallel_.zero >= 2) bucket.name += fmt::format("micro_batch_{}.", pass.micro_batch);
      bucket.name += layer.name;
    }
    bucket.parameters += parameters;
    bucket.ready = after_;
  }
  void close(Bucket& bucket) {
    if (group_size(parallel_, bucket.group) > 1) {
      if (parallel_.zero == 3 && parallel_.overlap)
        sum(bucket, bucket.ready);
      else
        full_.push_back(bucket);
    }
    bucket = {};
  }
  void sum(const Bucket& bucket, std::vector<NodeId> ready) {
    const bool shards = parallel_.zero > 0;
    align(bucket.name + (shards ? ".reduce_scatter" : ".all_reduce"),
          shards ? CollectiveKind::reduce_scatter : CollectiveKind::all_reduce,
          bucket.parameters * value_bytes(parallel_.gradients), bucket.group, std::move(ready));
  }

  /// What is left to sum, the optimizer, and the new parameters to those who have not computed them. The sums come last
  /// in the order of ids, so that communication that passes wait for goes first.
  void update() {
    join();
    for (const Bucket& bucket : full_) sum(bucket, parallel_.overlap ? bucket.ready : after_);
    tie();
    auto ready = after_;
    if (last_aligned_) ready.push_back(*last_aligned_);
    const std::uint64_t own = own_parameters();
    const auto given = given_update();
    if (own > 0 || given != Time::zero())
      ready = {builder_.compute("optimizer", optimizer_flops * own, Bytes(optimizer_traffic(parallel_) * own), ready,
                                given.value_or(Time::zero()))};
    if (parallel_.zero == 0 || parallel_.zero == 3) return;
    for (const auto& [group, parameters, name] : to_gather())
      align(fmt::format("{}.all_gather", name), CollectiveKind::all_gather,
            share(parameters, group_size(parallel_, group)) * value_bytes(parallel_.precision), group, ready);
  }

  /// First and last stage hold copies of one embedding.
  void tie() {
    for (std::uint32_t chunk = 0; chunk < parallel_.interleaving; ++chunk)
      for (const Layer& layer : dealt_[chunk * parallel_[Axis::pp] + stage_]) {
        if (layer.tied == 0 || group_size(parallel_, GroupKind::embedding) == 1) continue;
        const std::uint64_t summed =
            parallel_.zero == 0 ? layer.tied : share(layer.tied, group_size(parallel_, GroupKind::data));
        align("gradient.embedding.tied.all_reduce", CollectiveKind::all_reduce,
              summed * value_bytes(parallel_.gradients), GroupKind::embedding, after_);
      }
  }

  /// The time that layers say the optimizer takes for them; nothing if none does.
  std::optional<Time> given_update() const {
    std::optional<Time> sum;
    for (std::uint32_t chunk = 0; chunk < parallel_.interleaving; ++chunk)
      for (const Layer& layer : dealt_[chunk * parallel_[Axis::pp] + stage_])
        if (layer.update) sum = sum.value_or(Time::zero()) + *layer.update;
    return sum;
  }

  /// Of layers that do not say so.
  std::uint64_t own_parameters() const {
    std::uint64_t own = 0;
    const bool shards = parallel_.zero > 0;
    for (std::uint32_t chunk = 0; chunk < parallel_.interleaving; ++chunk)
      for (const Layer& layer : dealt_[chunk * parallel_[Axis::pp] + stage_])
        if (!layer.update)
          own += share(layer.dense, shards ? group_size(parallel_, GroupKind::data) : 1) +
                 share(layer.experts, shards ? group_size(parallel_, GroupKind::expert_data) : 1);
    return own;
  }

  struct Gather {
    GroupKind group;
    std::uint64_t parameters;
    std::string name;
  };
  /// Layer by layer, in the order of the next step's forward pass.
  std::vector<Gather> to_gather() const {
    std::vector<Gather> result;
    for (std::uint32_t chunk = 0; chunk < parallel_.interleaving; ++chunk)
      for (const Layer& layer : dealt_[chunk * parallel_[Axis::pp] + stage_]) {
        if (layer.dense > 0 && group_size(parallel_, GroupKind::data) > 1)
          result.push_back({GroupKind::data, layer.dense, fmt::format("parameters.{}", layer.name)});
        if (layer.experts > 0 && group_size(parallel_, GroupKind::expert_data) > 1)
          result.push_back({GroupKind::expert_data, layer.experts, fmt::format("parameters.experts.{}", layer.name)});
      }
    return result;
  }

  const Parallel& parallel_;
  std::span<const std::span<const Layer>> dealt_;
  std::uint32_t stage_;
  trace::Builder builder_;
  std::deque<Visit> visits_;   // that are left, this one first
  std::vector<NodeId> after_;  // what the next node of the chain waits for
  std::vector<NodeId> aside_;
  Op pending_;
  std::string pending_name_;
  std::deque<std::vector<NodeId>> gathered_;  // [up to prefetch + 1] for visits_
  std::optional<NodeId> last_aligned_;
  Bucket dense_, experts_;
  std::vector<Bucket> full_;
};

}  // namespace

std::uint64_t optimizer_state_bytes(Precision precision) { return precision == Precision::fp32 ? 8 : 12; }

std::vector<std::span<const Layer>> deal(std::span<const Layer> layers, std::uint32_t num_virtual_stages) {
  const bool first_extra = layers.front().extra, last_extra = layers.back().extra;
  const std::size_t blocks = layers.size() - (first_extra ? 1 : 0) - (last_extra ? 1 : 0);
  const std::size_t each = blocks / num_virtual_stages, more = blocks % num_virtual_stages;
  const std::size_t first_with_more = (num_virtual_stages - more) / 2;
  std::vector<std::span<const Layer>> dealt;
  std::size_t at = 0;
  for (std::size_t i = 0; i < num_virtual_stages; ++i) {
    std::size_t count = each + (i >= first_with_more && i < first_with_more + more ? 1 : 0);
    if (i == 0 && first_extra) ++count;
    if (i + 1 == num_virtual_stages) count = layers.size() - at;
    dealt.push_back(layers.subspan(at, count));
    at += count;
  }
  return dealt;
}

trace::Structure step_of_stage(const Parallel& parallel, std::span<const std::span<const Layer>> dealt,
                               std::uint32_t stage, Time late) {
  return Author(parallel, dealt, stage).write(late);
}

}  // namespace orrery::workload
