#include "keys.hpp"
#include "orrery/base/text.hpp"
#include "system_size.hpp"
#include "validation.hpp"

namespace orrery::config {
namespace {

using workload::LayerList;
using workload::Transformer;

constexpr std::uint32_t most_layers = 1U << 20U;  // that one entry of a list may stand for

constexpr auto model_flag(Text name) { return flag(name, Heading::generated_model, "N", {Taker::generate}); }

constexpr Handling<LayerList> layers() {
  return {[](const Value& value, const std::string& path, LayerList& target, Reading& reading) {
            const auto& items =
                as_list(value, path, layer_list_keys().find("workload.model.layers")->info().expected({}));
            std::size_t number = 0;
            target.layers.clear();
            read_items(layer_keys(), items, path, reading, [&](LayerEntry&& entry, const Place&, bool) {
              if (entry.layer.name.empty()) entry.layer.name = fmt::format("layer_{}", number);
              target.layers.resize(target.layers.size() + entry.repeat, entry.layer);
              ++number;
            });
          },
          [](const LayerList& target, std::string_view path, Writer& writer) {
            std::vector<std::string> items;
            for (const auto& layer : target.layers) items.push_back(flow_text(layer_keys(), LayerEntry{layer}));
            writer.put_list(path, items);
          },
          [](const LayerList& a, const LayerList& b) { return a.layers == b.layers; }};
}

constexpr Handling<LayerList> late_start() {
  return {[](const Value& value, const std::string& path, LayerList& target, Reading& reading) {
            Sections sections(Section(&value, path, value, reading.faults));
            target.late = LayerList::Late{};
            read_keys(late_keys(), sections, *target.late, reading);
            sections.refuse_unknown();
          },
          [](const LayerList& target, std::string_view, Writer& writer) {
            if (target.late) write_keys(late_keys(), *target.late, writer);
          },
          [](const LayerList& a, const LayerList& b) { return a.late == b.late; }};
}

constexpr Handling<Transformer> modules_of_model() {
  return {[](const Value& value, const std::string& path, Transformer& model, Reading&) {
            model.recomputed = as_recomputed_modules(value, path);
          },
          [](const Transformer& model, std::string_view path, Writer& writer) {
            writer.put(path, text_of(model.recomputed));
          },
          [](const Transformer& a, const Transformer& b) { return a.recomputed == b.recomputed; }};
}

bool is_timed(const LayerEntry& entry) { return entry.layer.is_timed(); }
bool has_flops(const LayerEntry& entry) { return !entry.layer.is_timed(); }

constexpr Row<Transformer> transformer_rows[] = {
    {"workload.model.layers", "transformer layers", "32", Default::needed(), count(),
     [](auto& model) { return &model.layers; }, model_flag("layers")},
    {"workload.model.hidden", "width of the model", "4096", Default::needed(), large_count(1),
     [](auto& model) { return &model.hidden; }, model_flag("hidden")},
    {"workload.model.heads", "heads of the attention", "32", Default::needed(), count(),
     [](auto& model) { return &model.attention.heads; }},
    {"workload.model.sequence", "tokens of a sample", "2048", Default::needed(), large_count(1),
     [](auto& model) { return &model.sequence; }, model_flag("sequence")},

    // Adds the sizes that have a default.
    {"workload.model.kv-heads", "heads of keys and values; 0: as many as `heads`. A larger `tp` repeats them", "8",
     Default::built_in(), count(0), [](auto& model) { return &model.attention.kv_heads; }},
    {"workload.model.head-size", "width of a head; 0: hidden / heads", "128", Default::built_in(), large_count(),
     [](auto& model) { return &model.attention.head_size; }},
    {"workload.model.ffn", "inner width of the MLP, of each expert; 0: 4 hidden", "14336", Default::built_in(),
     large_count(), [](auto& model) { return &model.mlp.width; }},
    {"workload.model.vocabulary", "words that the model knows; 0: it has neither embedding nor output layer", "128256",
     Default::built_in(), large_count(), [](auto& model) { return &model.embedding.vocabulary; }},
    {"workload.model.experts", "experts of the MLP of each layer; 0: the model is dense", "8", Default::built_in(),
     count(0), [](auto& model) { return &model.mlp.experts; }},
    {"workload.model.top-k", "experts that a token passes", "2", Default::built_in(), count(0),
     [](auto& model) { return &model.mlp.top_k; }},
    {"workload.model.expert-servers",
     "largest number of servers on which a token's experts are, of those that share a layer; 0: any number", "4",
     Default::built_in(), count(0), [](auto& model) { return &model.mlp.servers; }, see("workloads.md, *Experts*")},
    {"workload.model.shared-experts", "further experts, which every token passes", "1", Default::built_in(), count(0),
     [](auto& model) { return &model.mlp.shared_experts; }},
    {"workload.model.dense-layers", "first layers, which have no experts", "3", Default::built_in(), count(0),
     [](auto& model) { return &model.mlp.dense_layers; }},
    {"workload.model.expert-interval", "after those, the last of so many layers has experts", "2", Default::built_in(),
     count(), [](auto& model) { return &model.mlp.interval; }},
    {"workload.model.dense-ffn", "inner width of the MLP of layers without experts; 0: `ffn`", "18432",
     Default::built_in(), large_count(), [](auto& model) { return &model.mlp.dense_width; }},
    {"workload.model.router-bias", "the router has a bias, which balances experts without a loss of their own", "true",
     Default::built_in(), boolean(), [](auto& model) { return &model.mlp.router_bias; }},
    {"workload.model.further-tokens", "tokens after the next one that the model predicts, each by a separate block",
     "1", Default::built_in(), count(0), [](auto& model) { return &model.further_tokens; }},

    // Adds the widths of multi-head latent attention.
    {"workload.model.latent.key-value",
     "latent attention: width of the vector of which keys and values are made; 0: none", "512", Default::built_in(),
     large_count(), [](auto& model) { return &model.latent.key_value; }, see("workloads.md, *Models*")},
    {"workload.model.latent.query", "width of the vector of which queries are made; 0: they are made of the token",
     "1536", Default::built_in(), large_count(), [](auto& model) { return &model.latent.query; }},
    {"workload.model.latent.rotary", "width of the part of queries and keys that positions turn, besides `head-size`",
     "64", Default::built_in(), large_count(), [](auto& model) { return &model.latent.rotary; }},
    {"workload.model.latent.value", "width of the values of a head; 0: that of a head", "128", Default::built_in(),
     large_count(), [](auto& model) { return &model.latent.value; }},
    {"workload.model.gated", "three matrices in the MLP (SwiGLU) instead of two", "true", Default::built_in(),
     boolean(), [](auto& model) { return &model.mlp.gated; }},
    {"workload.model.biases", "biases in all products, and two vectors in norms instead of one", "true",
     Default::built_in(), boolean(), [](auto& model) { return &model.biases; }},
    {"workload.model.dropout", "dropout, whose masks are moved and kept", "true", Default::built_in(), boolean(),
     [](auto& model) { return &model.dropout; }},
    {"workload.model.learned-positions", "position embeddings", "true", Default::built_in(), boolean(),
     [](auto& model) { return &model.embedding.learned_positions; }},
    {"workload.model.tied-embeddings", "an output layer that is the transpose of the embedding", "true",
     Default::built_in(), boolean(), [](auto& model) { return &model.embedding.tied; }},
    {"workload.model.fused-attention",
     "scores stay on chip (FlashAttention) and are computed again in the backward pass", "false", Default::built_in(),
     boolean(), [](auto& model) { return &model.attention.fused; }},
    {"workload.model.causal", "a token attends to those before it only: a fused core computes half of the scores",
     "false", Default::built_in(), boolean(), [](auto& model) { return &model.attention.causal; }},
    {"workload.model.rotary", "rotary position embeddings, which queries and keys pass", "true", Default::built_in(),
     boolean(), [](auto& model) { return &model.attention.rotary; }},
    {"workload.model.recompute-modules",
     "parts of a layer that the backward pass of this model computes again; `workload.parallel.recompute-modules` "
     "replaces them",
     "[norms, swiglu, latent]", Default::described("[]"),
     ValueInfo("list of words", recomputed_modules_expected, "-", "each once", words_info<recomputed_modules>),
     modules_of_model(), see("workloads.md, *Memory*")},
    {"workload.model.head-norms", "norms of the heads of queries and keys", "true", Default::built_in(), boolean(),
     [](auto& model) { return &model.attention.head_norms; }},
};

constexpr Row<LayerList> layer_list_rows[] = {
    {"workload.model.layers", "layers in a row; the keys of an entry are those of `workload.model.layers`",
     "[{name: conv1, parameters: 9408, flops: 236027904, activations: 802816}]", Default::needed(),
     ValueInfo("list", "a list of layers", "-", "1 entry or more"), layers()},
    {"workload.model.late", "later starts of the NPUs; the keys are those of `workload.model.late`",
     "{first: 1 us, step: 1 us, stride: 7919}", Default::none(),
     ValueInfo("mapping", "a mapping of first, step and stride", "-", "the keys below"), late_start()},
};

constexpr Row<LayerEntry> layer_rows[] = {
    {"workload.model.layers.name", "name of the layer", "conv1", Default::described("layer_0, layer_1, ..."),
     any_text("a name"), [](auto& entry) { return &entry.layer.name; }},
    {"workload.model.layers.parameters", "parameters of the layer", "9408", Default::needed(), large_count(),
     [](auto& entry) { return &entry.layer.parameters; }},
    {"workload.model.layers.flops", "FLOPs of the forward pass of one sample; the backward pass takes twice that",
     "236027904", Default::none(), large_count(), [](auto& entry) { return &entry.layer.flops; },
     check([](const LayerEntry& entry, const Place& place, const Reading&) {
       if (entry.layer.flops == 0) throw Error(ErrorCode::bad_input, place, "found 0", "1 or more");
     }),
     written_if(has_flops)},
    {"workload.model.layers.activations", "values that the layer hands to the next one, for one sample", "802816",
     Default::built_in(), large_count(), [](auto& entry) { return &entry.layer.activations; },
     needed_if([](const LayerEntry& entry, const Reading&) { return has_flops(entry); }, "flops are given")},
    {"workload.model.layers.forward", "in place of `flops`: time of the forward pass, for a micro-batch", "10 us",
     Default::built_in(), duration(), [](auto& entry) { return &entry.layer.forward; },
     excludes("workload.model.layers.flops"), written_if(is_timed)},
    {"workload.model.layers.backward", "in place of `flops`: time of the backward pass, for a micro-batch", "20 us",
     Default::built_in(), duration(), [](auto& entry) { return &entry.layer.backward; },
     excludes("workload.model.layers.flops"), written_if(is_timed)},
    {"workload.model.layers.update", "in place of `flops`: time that the layer adds to the optimizer's", "5 us",
     Default::built_in(), duration(), [](auto& entry) { return &entry.layer.update; },
     excludes("workload.model.layers.flops"), written_if(is_timed)},
    {"workload.model.layers.repeat", "number of such layers in a row", "12", Default::built_in(), count(1, most_layers),
     [](auto& entry) { return &entry.repeat; }, written_unless_default()},
};

constexpr Row<LayerList::Late> late_rows[] = {
    {"workload.model.late.first", "time by which the first NPU starts late", "1 us", Default::built_in(), duration(),
     [](auto& late) { return &late.first; }},
    {"workload.model.late.step", "time between two starts: NPU i of N starts after first + (stride i mod N) step",
     "1 us", Default::built_in(), duration(), [](auto& late) { return &late.step; }},
    {"workload.model.late.stride", "number that mixes the order of the starts", "7919", Default::built_in(), count(0),
     [](auto& late) { return &late.stride; }},
};

}  // namespace

const Keys<Transformer>& transformer_keys() {
  static const Keys<Transformer> all("workload.model, kind: transformer", transformer_rows, "workload.model");
  return all;
}

const Keys<LayerList>& layer_list_keys() {
  static const Keys<LayerList> all("workload.model, kind: layers", layer_list_rows, "workload.model");
  return all;
}

const Keys<LayerEntry>& layer_keys() {
  static const Keys<LayerEntry> all("workload.model.layers", layer_rows, "workload.model.layers");
  return all;
}

const Keys<LayerList::Late>& late_keys() {
  static const Keys<LayerList::Late> all("workload.model.late", late_rows, "workload.model.late");
  return all;
}

void Validation::validate_generated() {
  const auto& generated = *workload_->generated;
  const bool has_recorded = c_.execution.compute.model->uses_recorded;
  const bool takes_times = has_recorded || c_.execution.compute.model->estimates_operations;
  if (generated.parallel.num_npus() != num_npus_) {
    const Contradiction product = contradiction_of_product(c_, generated.parallel, num_npus_);
    refuse(product.key, product.found, product.expected);
  }
  const bool is_timed = generated.has_times();
  if (is_timed && !takes_times)
    refuse(
        "workload.model",
        fmt::format("times are given, but the compute model {} does not use them", c_.execution.compute.model.name()),
        "layers with flops and no late, or system.compute.model: recorded");
  require(is_timed || !has_recorded || c_.execution.replay_only, "system.compute.roofline",
          "found false, but the workload is generated from a model in FLOPs, which would take no time",
          "true, with system.compute.peak and system.compute.local-memory.bandwidth");
  const auto& offload = generated.parallel.sharding.offload;
  require(!offload.any() || c_.remote_memory.kind->has_memory, "workload.parallel.offload",
          "found what lives in remote memory, but the system has none",
          "system.remote-memory with a kind, or nothing offloaded");
  require(!offload.on_path || c_.remote_memory.kind->combines_on_path, "workload.parallel.offload-collectives",
          "found path, but the remote memory has no switches that gather and add up",
          "network, or system.remote-memory.kind: hierarchical-pool");
  validate_experts(generated);
  require(workload_->custom_nodes.empty(), "system.collectives.custom.nodes",
          "found ids of nodes, but the workload is generated",
          "traces (workload.traces), or collectives by kind (system.collectives.custom.KIND)");
  require(!c_.execution.replay_only, "workload.replay-only",
          "found true, but the nodes of a generated workload have no recorded durations", "false");
}

/// Kernels of experts are of GPUs, and all jobs have the same ones.
void Validation::validate_experts(const workload::Description& generated) {
  const auto* const model = std::get_if<workload::Transformer>(&generated.model);
  if (model == nullptr || !generated.parallel.has_expert_kernels()) return;
  const std::string_view key = "workload.parallel.expert-exchange", expected = "all-to-all";
  require(c_.rule_set == RuleSet::physical, key, "found kernels of experts with ASTRA-sim's rules", expected);
  const auto& options = c_.collectives.library.experts;
  const bool is_low_latency = generated.parallel.experts.exchange == workload::ExpertExchange::low_latency;
  require(is_low_latency != options.kernels->sends_once, key,
          fmt::format("found {}, but the kernels are {}", is_low_latency ? "low-latency" : "once-per-server",
                      options.kernels.name()),
          "the kernels of this exchange, in all jobs (system.collectives.experts.kernels)");
  require(options.top_k == model->mlp.top_k && options.servers == model->mlp.servers, "workload.model.top-k",
          "jobs send tokens to different numbers of experts or servers by kernels of experts",
          "equal numbers, or workload.parallel.expert-exchange: all-to-all");
}

}  // namespace orrery::config
