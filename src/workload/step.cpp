#include "step.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <map>
#include <optional>

#include "model_states.hpp"
#include "orrery/base/error.hpp"
#include "schedule.hpp"
#include "tensors.hpp"

namespace orrery::workload {
namespace {

/// Makes the nodes of one NPU. Passes form a chain: each node waits for the one before it. Beside it are sends, which
/// nothing waits for; collectives aside, up to their join; and what ModelStates does. Tensors go from the node that
/// makes them to the one that needs them last.
class Author {
 public:
  Author(const Parallel& parallel, std::span<const std::span<const Layer>> dealt, std::uint32_t stage)
      : parallel_(parallel),
        dealt_(dealt),
        stage_(stage),
        states_(parallel, layers_of_stage(parallel, dealt, stage), builder_) {}

  trace::Structure write(Time late) {
    if (late > Time::zero()) extend(builder_.compute("late", 0, Bytes(0), {}, late));
    const auto passes = passes_of(parallel_, stage_);
    for (const Pass& pass : passes) list_visits(pass);
    for (const Pass& pass : passes) run(pass);
    join();
    states_.update(after_);
    auto structure = builder_.finish();
    require_countable_tensors(structure.graph.tensors);
    return structure;
  }

 private:
  /// A layer in a pass.
  struct Visit {
    Pass pass;
    const Layer* layer;
  };

  static void require_countable_tensors(const trace::Tensors& tensors) {
    Bytes sum;
    for (const std::uint64_t bytes : tensors.sizes) sum += Bytes(bytes);
    if (sum > Bytes::most())
      throw Error(ErrorCode::bad_input, {.key = "workload.model"},
                  "the tensors of an NPU in a step exceed 8 EiB in all", "fewer layers, samples or micro-batches");
  }
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

  void extend(NodeId node) {
    after_ = {node};
    last_ = node;
    if (!first_) first_ = node;
    hand_over(builder_, received_, node);
    received_ = {};
  }
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

  static std::string name_of(const Visit& visit) {
    return fmt::format("{}.micro_batch_{}.{}", visit.pass.forward ? "forward" : "backward", visit.pass.micro_batch,
                       visit.layer->name);
  }
  void visit(const Visit& visit) {
    ModelStates::Fetched fetched;
    if (parallel_.zero == 3 || parallel_.offload.parameters) fetched = fetch_parameters();
    if (visit.pass.forward)
      begun_[{visit.pass.micro_batch, visit.layer}] = stretch(visit, visit.layer->forward);
    else
      go_back(visit);
    for (const Made& parameters : fetched.parameters) hand_over(builder_, parameters, last_);
  }
  /// Returns the first node, if it comes to any.
  std::optional<NodeId> stretch(const Visit& visit, const std::vector<Op>& ops) {
    first_.reset();
    execute(ops, name_of(visit));
    flush_products();
    return first_;
  }
  void go_back(const Visit& visit) {
    const Layer& layer = *visit.layer;
    const std::uint32_t micro_batch = visit.pass.micro_batch;
    const auto again = stretch(visit, layer.again), begin = stretch(visit, layer.backward);
    const auto list = [&](std::string_view what, std::uint64_t bytes, std::optional<NodeId> maker) {
      hand_over(builder_, {fmt::format("{}.micro_batch_{}.{}", what, micro_batch, layer.name), bytes, maker}, last_);
    };
    list("recomputed", layer.recomputed, again);
    list("activations", layer.activations, begun_.extract({micro_batch, &layer}).mapped());
    const bool last = micro_batch + 1 == parallel_.micro_batches;
    if (!last && parallel_.zero < 2) return;
    const bool pass_ends = &layer == &dealt_[virtual_stage(visit.pass)].front();
    states_.add_gradients(layer, micro_batch, begin, after_, pass_ends && (parallel_.zero >= 2 || visits_.size() == 1));
  }
  /// Of the visits up to `prefetch` ahead of this one; this one waits for its own.
  ModelStates::Fetched fetch_parameters() {
    while (fetched_.size() <= parallel_.prefetch && fetched_.size() < visits_.size()) {
      const Visit& ahead = visits_[fetched_.size()];
      fetched_.push_back(states_.fetch(*ahead.layer, name_of(ahead), after_));
    }
    ModelStates::Fetched own = std::move(fetched_.front());
    fetched_.pop_front();
    after_.insert(after_.end(), own.ready.begin(), own.ready.end());
    return own;
  }

  /// Of activations from the virtual stage before, or of their gradients from the one after.
  void receive(const Pass& pass) {
    const std::uint32_t here = virtual_stage(pass);
    if (here == (pass.forward ? 0 : dealt_.size() - 1)) return;
    const std::uint32_t boundary = pass.forward ? here - 1 : here;
    const std::uint64_t bytes = dealt_[boundary].back().output;
    const std::string name = message_name("receive", pass);
    const NodeId node = builder_.receive(name, neighbour(!pass.forward), tag(pass, boundary), Bytes(bytes), after_);
    extend(node);
    received_ = {name, bytes, node};
  }
  void send(const Pass& pass) {
    const std::uint32_t here = virtual_stage(pass);
    if (here == (pass.forward ? dealt_.size() - 1 : 0)) return;
    const std::uint32_t boundary = pass.forward ? here : here - 1;
    const std::uint64_t bytes = dealt_[boundary].back().output;
    const std::string name = message_name("send", pass);
    const NodeId node = builder_.send(name, neighbour(pass.forward), tag(pass, boundary), Bytes(bytes), after_);
    hand_over(builder_, {name, bytes, last_}, node);
  }
  static std::uint64_t tag(const Pass& pass, std::uint32_t boundary) { return 2 * boundary + (pass.forward ? 0 : 1); }
  std::string message_name(std::string_view what, const Pass& pass) const {
    return fmt::format("{}.{}.micro_batch_{}{}", what, pass.forward ? "forward" : "backward", pass.micro_batch,
                       parallel_.interleaving > 1 ? fmt::format(".chunk_{}", pass.chunk) : "");
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
  std::optional<NodeId> last_, first_;        // of the chain, and of it since the last reset
  Made received_;                             // that the next node of the chain needs
  std::deque<ModelStates::Fetched> fetched_;  // [up to prefetch + 1] for visits_
  std::map<std::pair<std::uint32_t, const Layer*>, std::optional<NodeId>> begun_;  // by micro-batch: forward
  ModelStates states_;
};

}  // namespace

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

std::vector<const Layer*> layers_of_stage(const Parallel& parallel, std::span<const std::span<const Layer>> dealt,
                                          std::uint32_t stage) {
  std::vector<const Layer*> layers;
  for (std::uint32_t chunk = 0; chunk < parallel.interleaving; ++chunk)
    for (const Layer& layer : dealt[chunk * parallel[Axis::pp] + stage]) layers.push_back(&layer);
  return layers;
}

trace::Structure step_of_stage(const Parallel& parallel, std::span<const std::span<const Layer>> dealt,
                               std::uint32_t stage, Time late) {
  return Author(parallel, dealt, stage).write(late);
}

}  // namespace orrery::workload
