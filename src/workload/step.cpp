#include "step.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <limits>
#include <map>
#include <optional>
#include <utility>

#include "inference.hpp"
#include "model_states.hpp"
#include "operators.hpp"
#include "orrery/base/error.hpp"
#include "schedule.hpp"
#include "tensor_lifetimes.hpp"

namespace orrery::workload {
namespace {

/// Makes the nodes of one NPU. Passes form a chain: each node waits for the one before it. Beside the chain are sends,
/// for which nothing waits; asynchronous collectives, up to their wait; and what ModelStates adds. A tensor is listed
/// from the node that makes it to the one that needs it last.
class StepBuilder {
 public:
  StepBuilder(const Parallel& parallel, std::span<const std::span<const Layer>> assigned, std::uint32_t stage)
      : parallel_(parallel),
        assigned_(assigned),
        stage_(stage),
        states_(parallel, layers_of_stage(parallel, assigned, stage), builder_) {}

  trace::Structure build(Time start) {
    begin(start);
    add_step();
    return finish();
  }
  /// Makes the steps of a request, whose tokens these are. The layers of the constructor are those whose memory counts.
  trace::Structure build_request(Time start, std::span<const std::uint64_t> tokens, const LayersOfToken& layers_of) {
    begin(start);
    const auto kept = assigned_;
    for (const std::uint64_t token : tokens) {
      const std::vector<Layer> layers = layers_of(token);
      const auto assigned = assign_layers(layers, parallel_);
      assigned_ = assigned;
      token_ = {fmt::format("token_{}.", token), token != tokens.front(), token != tokens.back()};
      add_step();
      if (stage_ == parallel_[Axis::pp] - 1) builder_.mark(*last_);
    }
    assigned_ = kept;
    return finish();
  }
  /// Makes the step of one micro-batch, whose passes these are, and says which nodes are on the chain. What only the
  /// first micro-batch waits for is left out: it cuts compute nodes that are one in the others.
  StageOutline outline(std::span<const Pass> passes) {
    StageOutline made;
    chain_ = &made.before;
    begin(Time::zero());
    for (const Pass& pass : passes) list_layer_passes(pass);
    for (const Pass& pass : passes) {
      made.passes.push_back(outline_of(parallel_, stage_, pass));
      chain_ = &made.passes.back().chain;
      add_passes(std::span(&pass, 1));
    }
    wait_for_collectives();
    chain_ = nullptr;
    made.end_of_passes = builder_.num_nodes();
    made.structure = finish();
    return made;
  }

 private:
  /// The pass of a micro-batch through one layer.
  struct LayerPass {
    Pass pass;
    const Layer* layer;
  };
  /// The step of a request that makes a token.
  struct TokenStep {
    std::string name;         ///< the beginning of the names of nodes
    bool takes_word = false;  ///< there is a token before it
    bool hands_word = false;  ///< there is one after it
  };
  /// Compute operators that are not a node yet.
  struct Merged {
    Operator sum;
    std::string name;
  };
  /// The first nodes of a micro-batch in a layer.
  struct Begun {
    std::optional<NodeId> forward, recomputation;
  };

  void begin(Time start) {
    if (start > Time::zero()) extend_chain(builder_.compute("late", 0, Bytes(0), {}, start));
    if (parallel_.between_steps > Time::zero())
      extend_chain(builder_.compute("between_steps", 0, Bytes(0), after_, parallel_.between_steps));
  }
  void add_step() {
    const auto passes = passes_of(parallel_, stage_);
    for (const Pass& pass : passes) list_layer_passes(pass);
    gather_updated_parameters(passes);
    add_passes(passes);
    wait_for_collectives();
  }
  trace::Structure finish() {
    if (parallel_.is_inference())
      list_inference_memory(parallel_, layers_of_stage(parallel_, assigned_, stage_), builder_, *last_);
    else
      states_.update(after_);
    auto structure = builder_.finish();
    require_countable_tensors(structure.graph.tensors);
    return structure;
  }

  static void require_countable_tensors(const trace::Tensors& tensors) {
    Bytes sum;
    for (const std::uint64_t bytes : tensors.sizes) sum += Bytes(bytes);
    if (sum > Bytes::most())
      throw Error(ErrorCode::bad_input, {.key = "workload.model"},
                  "the tensors of an NPU in a step exceed 8 EiB in all", "fewer layers, samples or micro-batches");
  }
  std::uint32_t virtual_stage(const Pass& pass) const { return parallel_.virtual_stage(stage_, pass.chunk); }
  /// Returns the micro-batch that is the last to add gradients of weights in the chunk of a pass. With two directions
  /// the first half of the micro-batches is that of chunk 0.
  std::uint32_t last_batch(const Pass& pass) const {
    const bool is_first_half = parallel_.is_mirrored() && pass.chunk == 0;
    return parallel_.micro_batches / (is_first_half ? 2 : 1) - 1;
  }
  /// Returns the stage that holds the part of the model after that of a pass, or before it.
  std::uint32_t neighbour(const Pass& pass, bool next) const {
    const std::uint32_t here = virtual_stage(pass);
    return parallel_.stage_of(next ? here + 1 : here - 1, pass.chunk);
  }

  /// Gathers what the last step has updated, in the order of the first forward passes.
  void gather_updated_parameters(const std::vector<Pass>& passes) {
    const Sharding& sharding = parallel_.sharding;
    if (!sharding.gather_before_forward || sharding.zero == 0 || sharding.zero == 3) return;
    for (const Pass& pass : passes)
      if (pass.is_forward() && pass.micro_batch == 0)
        for (const Layer& layer : assigned_[virtual_stage(pass)]) states_.gather_updated(layer, after_);
  }
  void list_layer_passes(const Pass& pass) {
    const auto layers = assigned_[virtual_stage(pass)];
    for (std::size_t k = 0; k < layers.size(); ++k)
      left_.push_back({pass, &layers[pass.is_forward() ? k : layers.size() - 1 - k]});
  }

  /// Adds passes one after the other. Those of a pair receive before they begin and send when both have ended.
  void add_passes(std::span<const Pass> passes) {
    while (!passes.empty()) {
      const auto pair = passes.first(passes.front().is_with_next ? 2 : 1);
      for (const Pass& pass : pair) add_receive(pass);
      for (const Pass& pass : pair) add_layers(pass);
      for (const Pass& pass : pair) add_send(pass);
      passes = passes.subspan(pair.size());
    }
  }
  void add_layers(const Pass& pass) {
    for (std::size_t k = assigned_[virtual_stage(pass)].size(); k > 0; --k) {
      add_layer_pass(left_.front());
      left_.pop_front();
    }
    finish_compute_node();
  }

  // ---- the chain ----

  void extend_chain(NodeId node) {
    after_ = {node};
    last_ = node;
    if (chain_ != nullptr) chain_->push_back(node);
    if (!first_) first_ = node;
    for (const MadeTensor& received : std::exchange(received_, {})) list_until(builder_, received, node);
  }
  void wait_for_collectives() {
    after_.insert(after_.end(), asynchronous_.begin(), asynchronous_.end());
    asynchronous_.clear();
  }
  /// Makes a node of the compute operators that were merged so far.
  void finish_compute_node() {
    if (merged_.sum.flops + merged_.sum.bytes > 0 || merged_.sum.duration > Time::zero())
      extend_chain(builder_.compute(std::move(merged_.name), merged_.sum.flops, Bytes(merged_.sum.bytes), after_,
                                    merged_.sum.duration));
    merged_ = {};
  }
  void add_compute(const Operator& op, const std::string& prefix) {
    // A node of several operators has the name of their part of the layer: "attention", not "attention.qkv".
    const bool is_fine = parallel_.detail == Detail::op;
    if (is_fine) finish_compute_node();
    const std::string_view name(op.name);
    if (!has_product()) merged_.name = fmt::format("{}.{}", prefix, is_fine ? name : name.substr(0, name.find('.')));
    merged_.sum.flops += op.flops;
    merged_.sum.bytes += op.bytes;
    merged_.sum.duration += op.duration;
  }
  bool has_product() const { return merged_.sum.flops > 0 || merged_.sum.duration > Time::zero(); }
  /// Finishes the node if it has a product. Operators without FLOPs are merged with the products after them, across
  /// communication, so that a block is one node.
  void finish_products() {
    if (has_product() || parallel_.detail == Detail::op) finish_compute_node();
  }
  void add_operators(const std::vector<Operator>& operators, const std::string& prefix) {
    for (const Operator& op : operators) {
      if (op.kind == Operator::Kind::compute) {
        add_compute(op, prefix);
        continue;
      }
      if (op.kind == Operator::Kind::wait && asynchronous_.empty()) continue;
      finish_products();
      if (op.kind == Operator::Kind::wait) {
        wait_for_collectives();
        continue;
      }
      const NodeId node = builder_.collective(fmt::format("{}.{}", prefix, op.name), op.collective, Bytes(op.bytes),
                                              static_cast<std::uint32_t>(op.group), after_);
      if (op.kind == Operator::Kind::asynchronous)
        asynchronous_.push_back(node);
      else
        extend_chain(node);
    }
  }

  std::string name_of(const LayerPass& at) const {
    return fmt::format("{}{}.micro_batch_{}.{}", token_.name, at.pass.name(), at.pass.micro_batch, at.layer->name);
  }
  void add_layer_pass(const LayerPass& at) {
    ModelStates::Fetched fetched;
    if (parallel_.sharding.zero == 3 || parallel_.sharding.offload.parameters) fetched = fetch_parameters();
    const auto freed = states_.take_awaited_for_buffers();
    after_.insert(after_.end(), freed.begin(), freed.end());
    if (const auto gathered = states_.take_updated(*at.layer); !gathered.empty()) {
      finish_compute_node();
      after_.insert(after_.end(), gathered.begin(), gathered.end());
    }
    if (parallel_.is_inference())
      add_operators_of(at, at.layer->forward);
    else if (at.pass.is_forward())
      begun_[{at.pass.micro_batch, at.layer}].forward = add_operators_of(at, at.layer->forward);
    else if (at.pass.kind == Pass::Kind::weights)
      end_backward(at, add_operators_of(at, weights_part(at.layer->backward)));
    else
      add_backward(at);
    for (const MadeTensor& parameters : fetched.parameters) list_until(builder_, parameters, last_);
  }
  /// Returns the first node, if there is one.
  std::optional<NodeId> add_operators_of(const LayerPass& at, const std::vector<Operator>& operators) {
    first_.reset();
    add_operators(operators, name_of(at));
    finish_products();
    return first_;
  }
  void add_backward(const LayerPass& at) {
    const Layer& layer = *at.layer;
    begun_[{at.pass.micro_batch, &layer}].recomputation = add_operators_of(at, layer.recomputation);
    if (at.pass.kind == Pass::Kind::inputs)
      add_operators_of(at, inputs_part(layer.backward));
    else
      end_backward(at, add_operators_of(at, layer.backward));
  }
  /// Ends the backward pass of a micro-batch through a layer. `begin` is the first node that makes gradients of
  /// weights.
  void end_backward(const LayerPass& at, std::optional<NodeId> begin) {
    const Layer& layer = *at.layer;
    const std::uint32_t micro_batch = at.pass.micro_batch;
    const auto list = [&](std::string_view what, std::uint64_t bytes, std::optional<NodeId> maker) {
      list_until(builder_, {fmt::format("{}.micro_batch_{}.{}", what, micro_batch, layer.name), bytes, maker}, last_);
    };
    const Begun begun = begun_.extract({micro_batch, &layer}).mapped();
    list("recomputed", layer.recomputed, begun.recomputation);
    list("activations", layer.activations, begun.forward);
    const bool is_last = micro_batch == last_batch(at.pass), every_one = parallel_.sharding.zero >= 2;
    if (!is_last && !every_one) return;
    const bool closes_each_chunk = every_one || parallel_.is_mirrored() || !parallel_.sharding.bucket;
    const bool pass_ends = &layer == &assigned_[virtual_stage(at.pass)].front();
    const bool closes_all = pass_ends && (closes_each_chunk || left_.size() == 1);
    states_.add_gradients(layer, micro_batch, begin, after_, closes_all ? 0 : bucket_size(virtual_stage(at.pass)));
    const auto exposed = states_.take_exposed();
    after_.insert(after_.end(), exposed.begin(), exposed.end());
  }
  /// Returns the bytes from which on a bucket is full. Megatron-Core has buckets in the first part of the model only,
  /// and only if reductions overlap; each other part is one bucket.
  std::uint64_t bucket_size(std::uint32_t virtual_stage) const {
    const Sharding& sharding = parallel_.sharding;
    if (sharding.bucket) return sharding.bucket->count();
    if (!sharding.overlap || virtual_stage > 0) return std::numeric_limits<std::uint64_t>::max();
    const std::uint64_t copies = group_size(parallel_, GroupKind::data);
    return std::max<std::uint64_t>(40'000'000, 1'000'000 * copies) * value_bytes(parallel_.gradients);
  }
  /// Fetches the parameters of up to `prefetch` layer passes ahead; this one waits for its own. Its own go first, so
  /// that they do not queue behind those of later passes.
  ModelStates::Fetched fetch_parameters() {
    fetch_ahead(1);
    const LayerPass& at = left_.front();
    const auto rest = needs_parameters(at) ? states_.fetch_rest(*at.layer, name_of(at), after_) : ModelStates::Nodes{};
    fetch_ahead(std::size_t{parallel_.sharding.prefetch} + 1);
    ModelStates::Fetched own = std::move(fetched_.front());
    fetched_.pop_front();
    after_.insert(after_.end(), own.ready.begin(), own.ready.end());
    after_.insert(after_.end(), rest.begin(), rest.end());
    return own;
  }
  /// Fetches the parameters of the first `count` of the layer passes that are left.
  void fetch_ahead(std::size_t count) {
    while (fetched_.size() < std::min(count, left_.size())) {
      const LayerPass& ahead = left_[fetched_.size()];
      fetched_.push_back(needs_parameters(ahead) ? states_.fetch_parameters(*ahead.layer, name_of(ahead), after_)
                                                 : ModelStates::Fetched{});
    }
  }
  /// The gradients of weights are products of what was kept and of gradients.
  static bool needs_parameters(const LayerPass& at) { return at.pass.kind != Pass::Kind::weights; }

  /// Receives activations from the virtual stage before, or their gradients from the one after.
  void add_receive(const Pass& pass) {
    const std::uint32_t here = virtual_stage(pass);
    if (token_.takes_word && here == 0) receive_words(pass);
    if (pass.kind == Pass::Kind::weights || here == (pass.is_forward() ? 0 : assigned_.size() - 1)) return;
    const std::uint32_t boundary = pass.is_forward() ? here - 1 : here, from = neighbour(pass, !pass.is_forward());
    if (from == stage_) return;
    const std::uint64_t bytes = assigned_[boundary].back().output;
    const std::string name = message_name("receive", pass);
    const NodeId node = builder_.receive(name, from, tag(pass, boundary), Bytes(bytes), after_);
    auto received = std::exchange(received_, {});
    extend_chain(node);
    received_ = std::move(received);
    received_.push_back({name, bytes, node});
  }
  void add_send(const Pass& pass) {
    const std::uint32_t here = virtual_stage(pass);
    if (token_.hands_word && here == assigned_.size() - 1) send_words(pass);
    if (pass.kind == Pass::Kind::weights || here == (pass.is_forward() ? assigned_.size() - 1 : 0)) return;
    const std::uint32_t boundary = pass.is_forward() ? here : here - 1, to = neighbour(pass, pass.is_forward());
    if (to == stage_) return;
    const std::uint64_t bytes = assigned_[boundary].back().output;
    const std::string name = message_name("send", pass);
    const NodeId node = builder_.send(name, to, tag(pass, boundary), Bytes(bytes), after_);
    list_until(builder_, {name, bytes, last_}, node);
  }
  /// The last stage chooses a word of each sequence, from which the first stage makes the next one.
  void receive_words(const Pass& pass) {
    const std::uint32_t last = parallel_[Axis::pp] - 1;
    if (last == 0) return;
    extend_chain(builder_.receive(message_name("words.receive", pass), last, tag(pass, last), words(), after_));
  }
  void send_words(const Pass& pass) {
    if (stage_ == 0) return;
    builder_.send(message_name("words.send", pass), 0, tag(pass, stage_), words(), after_);
  }
  Bytes words() const { return Bytes(sizeof(std::uint32_t) * parallel_.micro_batch); }
  static std::uint64_t tag(const Pass& pass, std::uint32_t boundary) {
    return 2 * boundary + (pass.is_forward() ? 0 : 1);
  }
  std::string message_name(std::string_view what, const Pass& pass) const {
    return fmt::format("{}{}.{}.micro_batch_{}{}", token_.name, what, pass.name(), pass.micro_batch,
                       parallel_.num_chunks() > 1 ? fmt::format(".chunk_{}", pass.chunk) : "");
  }

  const Parallel& parallel_;
  std::span<const std::span<const Layer>> assigned_;
  std::uint32_t stage_;
  TokenStep token_;
  trace::Builder builder_;
  std::deque<LayerPass> left_;        ///< layer passes to add, the current one first
  std::vector<NodeId> after_;         ///< the nodes for which the next node of the chain waits
  std::vector<NodeId> asynchronous_;  ///< collectives for which nothing waits so far
  Merged merged_;
  std::optional<NodeId> last_;                                     ///< the last node of the chain
  std::optional<NodeId> first_;                                    ///< its first node since the last reset
  std::vector<MadeTensor> received_;                               ///< what the next node of the chain needs
  std::deque<ModelStates::Fetched> fetched_;                       ///< [up to prefetch + 1] for the first of left_
  std::map<std::pair<std::uint32_t, const Layer*>, Begun> begun_;  ///< by micro-batch and layer
  std::vector<NodeId>* chain_ = nullptr;                           ///< notes the nodes of the chain, if there is one
  ModelStates states_;
};

}  // namespace

std::vector<std::span<const Layer>> assign_layers(std::span<const Layer> layers, const Parallel& parallel) {
  const std::uint32_t num_virtual_stages = parallel.num_virtual_stages();
  const bool first_extra = layers.front().is_beside_blocks, last_extra = layers.back().is_beside_blocks;
  const std::size_t blocks = layers.size() - (first_extra ? 1 : 0) - (last_extra ? 1 : 0);
  const std::size_t each = blocks / num_virtual_stages, more = blocks % num_virtual_stages;
  const std::size_t first_with_more = (num_virtual_stages - more) / 2;
  std::vector<std::span<const Layer>> assigned;
  std::size_t at = 0;
  for (std::size_t i = 0; i < num_virtual_stages; ++i) {
    std::size_t count = each + (i >= first_with_more && i < first_with_more + more ? 1 : 0);
    if (!parallel.pipeline.stage_layers.empty()) count = parallel.pipeline.stage_layers[i];
    if (i == 0 && first_extra) ++count;
    if (i + 1 == num_virtual_stages) count = layers.size() - at;
    assigned.push_back(layers.subspan(at, count));
    at += count;
  }
  return assigned;
}

std::vector<const Layer*> layers_of_stage(const Parallel& parallel, std::span<const std::span<const Layer>> assigned,
                                          std::uint32_t stage) {
  std::vector<const Layer*> layers;
  for (std::uint32_t chunk = 0; chunk < parallel.num_chunks(); ++chunk)
    for (const Layer& layer : assigned[parallel.virtual_stage(stage, chunk)]) layers.push_back(&layer);
  // Two stages of DualPipe hold the same layers, whose copies are kept equal in one order.
  std::ranges::sort(layers);
  return layers;
}

trace::Structure step_of_stage(const Parallel& parallel, std::span<const std::span<const Layer>> assigned,
                               std::uint32_t stage, Time start) {
  return StepBuilder(parallel, assigned, stage).build(start);
}

OutlinePass outline_of(const Parallel& parallel, std::uint32_t stage, const Pass& pass) {
  using Kind = OutlinePass::Kind;
  const bool is_weights = pass.kind == Pass::Kind::weights;
  return {.kind = pass.is_forward() ? Kind::forward : is_weights ? Kind::weights : Kind::backward,
          .virtual_stage = parallel.virtual_stage(stage, pass.chunk)};
}

StageOutline outline_of_stage(const Parallel& parallel, std::span<const std::span<const Layer>> assigned,
                              std::uint32_t stage, std::span<const Pass> passes) {
  return StepBuilder(parallel, assigned, stage).outline(passes);
}

trace::Structure request_of_stage(const Description& request, std::uint32_t stage, Time start,
                                  const LayersOfToken& layers_of) {
  const std::vector<Layer> largest = make_layers(largest_step(request));
  const auto assigned = assign_layers(largest, request.parallel);
  return StepBuilder(request.parallel, assigned, stage).build_request(start, request.parallel.made_tokens(), layers_of);
}

}  // namespace orrery::workload
