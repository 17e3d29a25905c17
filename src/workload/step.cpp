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
#include "pass_chain.hpp"
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
        chain_(parallel.detail, builder_),
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
      if (stage_ == parallel_[Axis::pp] - 1) builder_.mark(*chain_.last());
    }
    assigned_ = kept;
    return finish();
  }
  /// Makes the step of one micro-batch, whose passes these are, and says which nodes are on the chain. What only the
  /// first micro-batch waits for is left out: it cuts compute nodes that are one in the others.
  StageOutline outline(std::span<const Pass> passes) {
    StageOutline made;
    chain_.note(&made.before);
    begin(Time::zero());
    for (const Pass& pass : passes) list_layer_passes(pass);
    for (const Pass& pass : passes) {
      made.passes.push_back(outline_of(pass));
      chain_.note(&made.passes.back().chain);
      add_passes(std::span(&pass, 1));
    }
    chain_.wait_for_collectives();
    chain_.note(nullptr);
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
  /// The first nodes of a micro-batch in a layer.
  struct Begun {
    std::optional<NodeId> forward, recomputation;
  };

  void begin(Time start) {
    if (start > Time::zero()) chain_.extend(builder_.compute("late", 0, Bytes(0), {}, start));
    if (parallel_.between_steps > Time::zero())
      chain_.extend(builder_.compute("between_steps", 0, Bytes(0), chain_.after(), parallel_.between_steps));
    if (casts_weights_once(parallel_)) cast_weights();
  }
  /// Reads each weight in 2 bytes and writes it as an operand, for all products of the step.
  void cast_weights() {
    const std::uint64_t weights = weights_of_products(layers_of_stage(parallel_, assigned_, stage_));
    const std::uint64_t moved = 2 * weights + operand_bytes(parallel_.precision, weights);
    if (weights > 0) chain_.extend(builder_.compute("weights.cast", 0, Bytes(moved), chain_.after()));
  }
  void add_step() {
    const auto passes = passes_of(parallel_, stage_);
    for (const Pass& pass : passes) list_layer_passes(pass);
    gather_updated_parameters(passes);
    add_passes(passes);
    chain_.wait_for_collectives();
  }
  trace::Structure finish() {
    if (parallel_.is_inference())
      list_inference_memory(parallel_, layers_of_stage(parallel_, assigned_, stage_), builder_, *chain_.last());
    else
      states_.update(chain_.after());
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
        for (const Layer& layer : assigned_[virtual_stage(pass)]) states_.gather_updated(layer, chain_.after());
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
      if (pair.size() == 2 && pairs_passes(parallel_))
        add_beside(pair[1], pair[0]);
      else
        for (const Pass& pass : pair) add_layers(pass);
      for (const Pass& pass : pair) add_send(pass);
      passes = passes.subspan(pair.size());
    }
  }
  /// A pass of a pair, which is suspended while its tokens travel.
  struct HalfOfPair {
    PassChain& chain;
    std::deque<LayerPass> left;            ///< layer passes to add, the current one first
    std::vector<Operator> operators = {};  ///< operators of the current layer
    std::span<const Operator> rest = {};   ///< those that are left of them
    bool is_in_layer = false;
  };
  /// Adds two passes, each of which computes while the tokens of the other travel. They take turns at every exchange,
  /// `first` before `second`, so that all NPUs have their exchanges in one order.
  void add_beside(const Pass& first, const Pass& second) {
    PassChain beside(parallel_.detail, builder_);
    beside.wait_for(chain_.after());
    // The layers of `second` come first in the order of the schedule.
    HalfOfPair of_second{beside, take_layers(second)}, of_first{chain_, take_layers(first)};
    HalfOfPair *turn = &of_first, *other = &of_second;
    while (!turn->left.empty() || !other->left.empty()) {
      if (const auto last = other->chain.last()) turn->chain.wait_for(std::span(&*last, 1));
      add_until_exchange(*turn);
      turn->chain.finish_compute_node();
      std::swap(turn, other);
    }
    beside.wait_for_collectives();
    chain_.wait_for(beside.after());
  }
  std::deque<LayerPass> take_layers(const Pass& pass) {
    std::deque<LayerPass> taken;
    for (std::size_t k = assigned_[virtual_stage(pass)].size(); k > 0; --k) {
      taken.push_back(left_.front());
      left_.pop_front();
    }
    return taken;
  }
  /// Adds the nodes of a pass until its tokens travel or it ends.
  void add_until_exchange(HalfOfPair& half) {
    for (; !half.left.empty(); half.left.pop_front()) {
      const LayerPass& at = half.left.front();
      if (!std::exchange(half.is_in_layer, true)) begin_layer(half, at);
      if (half.chain.add_until_exchange(half.rest, name_of(at))) return;
      half.is_in_layer = false;
      end_layer(half, at);
    }
  }
  void begin_layer(HalfOfPair& half, const LayerPass& at) {
    if (const auto gathered = states_.take_updated(*at.layer); !gathered.empty()) {
      half.chain.finish_compute_node();
      half.chain.wait_for(gathered);
    }
    const Layer& layer = *at.layer;
    half.operators = at.pass.is_forward() ? layer.forward : layer.recomputation;
    if (!at.pass.is_forward()) {
      const auto backward = at.pass.kind == Pass::Kind::inputs ? inputs_part(layer.backward) : layer.backward;
      half.operators.insert(half.operators.end(), backward.begin(), backward.end());
    }
    half.rest = half.operators;
    half.chain.begin();
  }
  void end_layer(HalfOfPair& half, const LayerPass& at) {
    Begun& begun = begun_[{at.pass.micro_batch, at.layer}];
    if (at.pass.is_forward()) {
      begun.forward = half.chain.first();
      return;
    }
    begun.recomputation = half.chain.first();
    if (at.pass.kind == Pass::Kind::backward) end_backward(at, half.chain.first(), half.chain, false);
  }
  void add_layers(const Pass& pass) {
    for (std::size_t k = assigned_[virtual_stage(pass)].size(); k > 0; --k) {
      add_layer_pass(left_.front());
      left_.pop_front();
    }
    chain_.finish_compute_node();
  }

  std::string name_of(const LayerPass& at) const {
    return fmt::format("{}{}.micro_batch_{}.{}", token_.name, at.pass.name(), at.pass.micro_batch, at.layer->name);
  }
  void add_layer_pass(const LayerPass& at) {
    ModelStates::Fetched fetched;
    if (parallel_.sharding.zero == 3 || parallel_.sharding.offload.parameters) fetched = fetch_parameters();
    chain_.wait_for(states_.take_awaited_for_buffers());
    if (const auto gathered = states_.take_updated(*at.layer); !gathered.empty()) {
      chain_.finish_compute_node();
      chain_.wait_for(gathered);
    }
    if (parallel_.is_inference())
      chain_.add(at.layer->forward, name_of(at));
    else if (at.pass.is_forward())
      begun_[{at.pass.micro_batch, at.layer}].forward = chain_.add(at.layer->forward, name_of(at));
    else if (at.pass.kind == Pass::Kind::weights)
      end_backward(at, chain_.add(weights_part(at.layer->backward), name_of(at)), chain_, left_.size() == 1);
    else
      add_backward(at);
    for (const MadeTensor& parameters : fetched.parameters) list_until(builder_, parameters, chain_.last());
  }
  void add_backward(const LayerPass& at) {
    const Layer& layer = *at.layer;
    begun_[{at.pass.micro_batch, &layer}].recomputation = chain_.add(layer.recomputation, name_of(at));
    if (at.pass.kind == Pass::Kind::inputs)
      chain_.add(inputs_part(layer.backward), name_of(at));
    else
      end_backward(at, chain_.add(layer.backward, name_of(at)), chain_, left_.size() == 1);
  }
  /// Ends the backward pass of a micro-batch through a layer. `begin` is the first node that makes gradients of
  /// weights, `chain` the chain of the pass.
  void end_backward(const LayerPass& at, std::optional<NodeId> begin, PassChain& chain, bool is_last_of_step) {
    const Layer& layer = *at.layer;
    const std::uint32_t micro_batch = at.pass.micro_batch;
    const auto list = [&](std::string_view what, std::uint64_t bytes, std::optional<NodeId> maker) {
      list_until(builder_, {fmt::format("{}.micro_batch_{}.{}", what, micro_batch, layer.name), bytes, maker},
                 chain.last());
    };
    const Begun begun = begun_.extract({micro_batch, &layer}).mapped();
    list("recomputed", layer.recomputed, begun.recomputation);
    list("activations", layer.activations, begun.forward);
    const bool is_last = micro_batch == last_batch(at.pass), every_one = parallel_.sharding.zero >= 2;
    if (!is_last && !every_one) return;
    const bool closes_each_chunk = every_one || parallel_.is_mirrored() || !parallel_.sharding.bucket;
    const bool pass_ends = &layer == &assigned_[virtual_stage(at.pass)].front();
    const bool closes_all = pass_ends && (closes_each_chunk || is_last_of_step);
    states_.add_gradients(layer, micro_batch, begin, chain.after(),
                          closes_all ? 0 : bucket_size(virtual_stage(at.pass)));
    chain.wait_for(states_.take_exposed());
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
    const auto rest =
        needs_parameters(at) ? states_.fetch_rest(*at.layer, name_of(at), chain_.after()) : ModelStates::Nodes{};
    fetch_ahead(std::size_t{parallel_.sharding.prefetch} + 1);
    ModelStates::Fetched own = std::move(fetched_.front());
    fetched_.pop_front();
    chain_.wait_for(own.ready);
    chain_.wait_for(rest);
    return own;
  }
  /// Fetches the parameters of the first `count` of the layer passes that are left.
  void fetch_ahead(std::size_t count) {
    while (fetched_.size() < std::min(count, left_.size())) {
      const LayerPass& ahead = left_[fetched_.size()];
      fetched_.push_back(needs_parameters(ahead)
                             ? states_.fetch_parameters(*ahead.layer, name_of(ahead), chain_.after())
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
    const std::uint64_t whole = assigned_[boundary].back().output, bytes = parallel_.message_bytes(whole);
    const std::string name = message_name("receive", pass);
    const NodeId node = builder_.receive(name, from, tag(pass, boundary), Bytes(bytes), chain_.after());
    chain_.extend_with_receive(node, {name, bytes, node});
    if (bytes < whole) gather_received(pass, bytes, whole);
  }
  void gather_received(const Pass& pass, std::uint64_t share, std::uint64_t whole) {
    const std::string name = message_name("gather", pass);
    const NodeId node = builder_.collective(name, trace::CollectiveKind::all_gather, Bytes(share),
                                            static_cast<std::uint32_t>(GroupKind::tensor), chain_.after());
    chain_.extend_with_receive(node, {name, whole, node});
  }
  void add_send(const Pass& pass) {
    const std::uint32_t here = virtual_stage(pass);
    if (token_.hands_word && here == assigned_.size() - 1) send_words(pass);
    if (pass.kind == Pass::Kind::weights || here == (pass.is_forward() ? assigned_.size() - 1 : 0)) return;
    const std::uint32_t boundary = pass.is_forward() ? here : here - 1, to = neighbour(pass, pass.is_forward());
    if (to == stage_) return;
    const std::uint64_t bytes = parallel_.message_bytes(assigned_[boundary].back().output);
    const std::string name = message_name("send", pass);
    const NodeId node = builder_.send(name, to, tag(pass, boundary), Bytes(bytes), chain_.after());
    list_until(builder_, {name, bytes, chain_.last()}, node);
  }
  /// The last stage chooses a word of each sequence, from which the first stage makes the next one.
  void receive_words(const Pass& pass) {
    const std::uint32_t last = parallel_[Axis::pp] - 1;
    if (last == 0) return;
    chain_.extend(
        builder_.receive(message_name("words.receive", pass), last, tag(pass, last), words(), chain_.after()));
  }
  void send_words(const Pass& pass) {
    if (stage_ == 0) return;
    builder_.send(message_name("words.send", pass), 0, tag(pass, stage_), words(), chain_.after());
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
  PassChain chain_;
  std::deque<LayerPass> left_;                                     ///< layer passes to add, the current one first
  std::deque<ModelStates::Fetched> fetched_;                       ///< [up to prefetch + 1] for the first of left_
  std::map<std::pair<std::uint32_t, const Layer*>, Begun> begun_;  ///< nodes begun, by micro-batch and layer
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

OutlinePass outline_of(const Pass& pass) {
  using Kind = OutlinePass::Kind;
  const bool is_weights = pass.kind == Pass::Kind::weights;
  return {.kind = pass.is_forward() ? Kind::forward : is_weights ? Kind::weights : Kind::backward, .chunk = pass.chunk};
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
