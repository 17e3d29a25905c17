#include "keys.hpp"
#include "orrery/base/text.hpp"

namespace orrery::config {
namespace {

using workload::LayerList;
using workload::Transformer;

constexpr std::uint32_t most_layers = 1U << 20U;  // that one entry of a list may stand for

Flag model_flag(Text name) {
  return {.name = name, .heading = Heading::generated_model, .argument = "N", .commands = {Taker::generate}};
}

void add_sizes(Keys<Transformer>& keys) {
  keys.add(
      {.path = "workload.model.layers",
       .help = "transformer layers",
       .example = "32",
       .otherwise = Default::needed(),
       .flag = model_flag("layers")},
      count(), [](auto& model) -> auto& { return model.layers; });
  keys.add(
      {.path = "workload.model.hidden",
       .help = "width of the model",
       .example = "4096",
       .otherwise = Default::needed(),
       .flag = model_flag("hidden")},
      large_count(1), [](auto& model) -> auto& { return model.hidden; });
  keys.add(
      {.path = "workload.model.heads",
       .help = "heads of the attention",
       .example = "32",
       .otherwise = Default::needed()},
      count(), [](auto& model) -> auto& { return model.attention.heads; });
  keys.add(
      {.path = "workload.model.sequence",
       .help = "tokens of a sample",
       .example = "2048",
       .otherwise = Default::needed(),
       .flag = model_flag("sequence")},
      large_count(1), [](auto& model) -> auto& { return model.sequence; });
}

/// Adds the sizes that have a default.
void add_optional_sizes(Keys<Transformer>& keys) {
  keys.add(
      {.path = "workload.model.kv-heads",
       .help = "heads of keys and values; 0: as many as `heads`. A larger `tp` repeats them",
       .example = "8",
       .otherwise = Default::built_in()},
      count(0), [](auto& model) -> auto& { return model.attention.kv_heads; });
  keys.add(
      {.path = "workload.model.head-size",
       .help = "width of a head; 0: hidden / heads",
       .example = "128",
       .otherwise = Default::built_in()},
      large_count(), [](auto& model) -> auto& { return model.attention.head_size; });
  keys.add(
      {.path = "workload.model.ffn",
       .help = "inner width of the MLP, of each expert; 0: 4 hidden",
       .example = "14336",
       .otherwise = Default::built_in()},
      large_count(), [](auto& model) -> auto& { return model.mlp.width; });
  keys.add(
      {.path = "workload.model.vocabulary",
       .help = "words that the model knows; 0: it has neither embedding nor output layer",
       .example = "128256",
       .otherwise = Default::built_in()},
      large_count(), [](auto& model) -> auto& { return model.embedding.vocabulary; });
  keys.add(
      {.path = "workload.model.experts",
       .help = "experts of the MLP of each layer; 0: the model is dense",
       .example = "8",
       .otherwise = Default::built_in()},
      count(0), [](auto& model) -> auto& { return model.mlp.experts; });
  keys.add(
      {.path = "workload.model.top-k",
       .help = "experts that a token passes",
       .example = "2",
       .otherwise = Default::built_in()},
      count(0), [](auto& model) -> auto& { return model.mlp.top_k; });
}

void add_expert_layers(Keys<Transformer>& keys) {
  keys.add(
      {.path = "workload.model.shared-experts",
       .help = "further experts, which every token passes",
       .example = "1",
       .otherwise = Default::built_in()},
      count(0), [](auto& model) -> auto& { return model.mlp.shared_experts; });
  keys.add(
      {.path = "workload.model.dense-layers",
       .help = "first layers, which have no experts",
       .example = "3",
       .otherwise = Default::built_in()},
      count(0), [](auto& model) -> auto& { return model.mlp.dense_layers; });
  keys.add(
      {.path = "workload.model.expert-interval",
       .help = "after those, the last of so many layers has experts",
       .example = "2",
       .otherwise = Default::built_in()},
      count(), [](auto& model) -> auto& { return model.mlp.interval; });
  keys.add(
      {.path = "workload.model.dense-ffn",
       .help = "inner width of the MLP of layers without experts; 0: `ffn`",
       .example = "18432",
       .otherwise = Default::built_in()},
      large_count(), [](auto& model) -> auto& { return model.mlp.dense_width; });
  keys.add(
      {.path = "workload.model.router-bias",
       .help = "the router has a bias, which balances experts without a loss of their own",
       .example = "true",
       .otherwise = Default::built_in()},
      boolean(), [](auto& model) -> auto& { return model.mlp.router_bias; });
  keys.add(
      {.path = "workload.model.further-tokens",
       .help = "tokens after the next one that the model predicts, each by a block of its own",
       .example = "1",
       .otherwise = Default::built_in()},
      count(0), [](auto& model) -> auto& { return model.further_tokens; });
}

/// Adds the widths of multi-head latent attention.
void add_latent(Keys<Transformer>& keys) {
  keys.add(
      {.path = "workload.model.latent.key-value",
       .help = "latent attention: width of the vector of which keys and values are made; 0: none",
       .example = "512",
       .otherwise = Default::built_in(),
       .see = "workloads.md, *Models*"},
      large_count(), [](auto& model) -> auto& { return model.latent.key_value; });
  keys.add(
      {.path = "workload.model.latent.query",
       .help = "width of the vector of which queries are made; 0: they are made of the token",
       .example = "1536",
       .otherwise = Default::built_in()},
      large_count(), [](auto& model) -> auto& { return model.latent.query; });
  keys.add(
      {.path = "workload.model.latent.rotary",
       .help = "width of the part of queries and keys that positions turn, besides `head-size`",
       .example = "64",
       .otherwise = Default::built_in()},
      large_count(), [](auto& model) -> auto& { return model.latent.rotary; });
  keys.add(
      {.path = "workload.model.latent.value",
       .help = "width of the values of a head; 0: that of a head",
       .example = "128",
       .otherwise = Default::built_in()},
      large_count(), [](auto& model) -> auto& { return model.latent.value; });
}

void add_variants(Keys<Transformer>& keys) {
  keys.add(
      {.path = "workload.model.gated",
       .help = "three matrices in the MLP (SwiGLU) instead of two",
       .example = "true",
       .otherwise = Default::built_in()},
      boolean(), [](auto& model) -> auto& { return model.mlp.gated; });
  keys.add(
      {.path = "workload.model.biases",
       .help = "biases in all products, and two vectors in norms instead of one",
       .example = "true",
       .otherwise = Default::built_in()},
      boolean(), [](auto& model) -> auto& { return model.biases; });
  keys.add(
      {.path = "workload.model.dropout",
       .help = "dropout, whose masks are moved and kept",
       .example = "true",
       .otherwise = Default::built_in()},
      boolean(), [](auto& model) -> auto& { return model.dropout; });
  keys.add(
      {.path = "workload.model.learned-positions",
       .help = "position embeddings",
       .example = "true",
       .otherwise = Default::built_in()},
      boolean(), [](auto& model) -> auto& { return model.embedding.learned_positions; });
  keys.add(
      {.path = "workload.model.tied-embeddings",
       .help = "an output layer that is the transpose of the embedding",
       .example = "true",
       .otherwise = Default::built_in()},
      boolean(), [](auto& model) -> auto& { return model.embedding.tied; });
  keys.add(
      {.path = "workload.model.fused-attention",
       .help = "scores stay on chip (FlashAttention) and are computed again in the backward pass",
       .example = "false",
       .otherwise = Default::built_in()},
      boolean(), [](auto& model) -> auto& { return model.attention.fused; });
  keys.add(
      {.path = "workload.model.causal",
       .help =
           "a token attends to those before it only; `system.compute.model: products` then takes half of the scores",
       .example = "false",
       .otherwise = Default::built_in()},
      boolean(), [](auto& model) -> auto& { return model.attention.causal; });
  keys.add(
      {.path = "workload.model.rotary",
       .help = "rotary position embeddings, which queries and keys pass",
       .example = "true",
       .otherwise = Default::built_in()},
      boolean(), [](auto& model) -> auto& { return model.attention.rotary; });
  keys.add(
      {.path = "workload.model.head-norms",
       .help = "norms of the heads of queries and keys",
       .example = "true",
       .otherwise = Default::built_in()},
      boolean(), [](auto& model) -> auto& { return model.attention.head_norms; });
}

Handling<LayerList> layers() {
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
          [](const LayerList& target, Writer& writer) {
            std::vector<std::string> items;
            for (const auto& layer : target.layers) items.push_back(flow_text(layer_keys(), LayerEntry{layer}));
            writer.put_list("workload.model.layers", items);
          },
          [](const LayerList& a, const LayerList& b) { return a.layers == b.layers; }};
}

Handling<LayerList> late_start() {
  return {[](const Value& value, const std::string& path, LayerList& target, Reading& reading) {
            Sections sections(Section(&value, path, value, reading.faults));
            target.late = LayerList::Late{};
            read_keys(late_keys(), sections, *target.late, reading);
            sections.refuse_unknown();
          },
          [](const LayerList& target, Writer& writer) {
            if (target.late) write_keys(late_keys(), *target.late, writer);
          },
          [](const LayerList& a, const LayerList& b) { return a.late == b.late; }};
}

bool is_timed(const LayerEntry& entry) { return entry.layer.is_timed(); }
bool has_flops(const LayerEntry& entry) { return !entry.layer.is_timed(); }

void add_times(Keys<LayerEntry>& keys) {
  keys.add(
          {.path = "workload.model.layers.forward",
           .help = "in place of `flops`: time of the forward pass, for a micro-batch",
           .example = "10 us",
           .otherwise = Default::built_in()},
          duration(), [](auto& entry) -> auto& { return entry.layer.forward; })
      .excludes("workload.model.layers.flops")
      .written_if(is_timed);
  keys.add(
          {.path = "workload.model.layers.backward",
           .help = "in place of `flops`: time of the backward pass, for a micro-batch",
           .example = "20 us",
           .otherwise = Default::built_in()},
          duration(), [](auto& entry) -> auto& { return entry.layer.backward; })
      .excludes("workload.model.layers.flops")
      .written_if(is_timed);
  keys.add(
          {.path = "workload.model.layers.update",
           .help = "in place of `flops`: time that the layer adds to the optimizer's",
           .example = "5 us",
           .otherwise = Default::built_in()},
          duration(), [](auto& entry) -> auto& { return entry.layer.update; })
      .excludes("workload.model.layers.flops")
      .written_if(is_timed);
}

}  // namespace

const Keys<Transformer>& transformer_keys() {
  static const Keys<Transformer> all = [] {
    Keys<Transformer> keys("workload.model, kind: transformer", "workload.model");
    add_sizes(keys);
    add_optional_sizes(keys);
    add_expert_layers(keys);
    add_latent(keys);
    add_variants(keys);
    return keys;
  }();
  return all;
}

const Keys<LayerList>& layer_list_keys() {
  static const Keys<LayerList> all = [] {
    Keys<LayerList> keys("workload.model, kind: layers", "workload.model");
    keys.add({.path = "workload.model.layers",
              .help = "layers in a row; the keys of an entry are those of `workload.model.layers`",
              .example = "[{name: conv1, parameters: 9408, flops: 236027904, activations: 802816}]",
              .otherwise = Default::needed()},
             {"list", "a list of layers", "-", "1 entry or more"}, layers());
    keys.add({.path = "workload.model.late",
              .help = "later starts of the NPUs; the keys are those of `workload.model.late`",
              .example = "{first: 1 us, step: 1 us, stride: 7919}",
              .otherwise = Default::none()},
             {"mapping", "a mapping of first, step and stride", "-", "the keys below"}, late_start());
    return keys;
  }();
  return all;
}

const Keys<LayerEntry>& layer_keys() {
  static const Keys<LayerEntry> all = [] {
    Keys<LayerEntry> keys("workload.model.layers", "workload.model.layers");
    keys.add(
        {.path = "workload.model.layers.name",
         .help = "name of the layer",
         .example = "conv1",
         .otherwise = Default::described("layer_0, layer_1, ...")},
        any_text("a name"), [](auto& entry) -> auto& { return entry.layer.name; });
    keys.add(
        {.path = "workload.model.layers.parameters",
         .help = "parameters of the layer",
         .example = "9408",
         .otherwise = Default::needed()},
        large_count(), [](auto& entry) -> auto& { return entry.layer.parameters; });
    keys.add(
            {.path = "workload.model.layers.flops",
             .help = "FLOPs of the forward pass of one sample; the backward pass takes twice that",
             .example = "236027904",
             .otherwise = Default::none()},
            large_count(), [](auto& entry) -> auto& { return entry.layer.flops; })
        .check([](const LayerEntry& entry, const Place& place, const Reading&) {
          if (entry.layer.flops == 0) throw Error(ErrorCode::bad_input, place, "found 0", "1 or more");
        })
        .written_if(has_flops);
    keys.add(
            {.path = "workload.model.layers.activations",
             .help = "values that the layer hands to the next one, for one sample",
             .example = "802816",
             .otherwise = Default::built_in()},
            large_count(), [](auto& entry) -> auto& { return entry.layer.activations; })
        .needed_if([](const LayerEntry& entry, const Reading&) { return has_flops(entry); }, "flops are given");
    add_times(keys);
    keys.add(
            {.path = "workload.model.layers.repeat",
             .help = "number of such layers in a row",
             .example = "12",
             .otherwise = Default::built_in()},
            count(1, most_layers), [](auto& entry) -> auto& { return entry.repeat; })
        .written_unless_default();
    return keys;
  }();
  return all;
}

const Keys<LayerList::Late>& late_keys() {
  static const Keys<LayerList::Late> all = [] {
    Keys<LayerList::Late> keys("workload.model.late", "workload.model.late");
    keys.add(
        {.path = "workload.model.late.first",
         .help = "time by which the first NPU starts late",
         .example = "1 us",
         .otherwise = Default::built_in()},
        duration(), [](auto& late) -> auto& { return late.first; });
    keys.add(
        {.path = "workload.model.late.step",
         .help = "time between two starts: NPU i of N starts after first + (stride i mod N) step",
         .example = "1 us",
         .otherwise = Default::built_in()},
        duration(), [](auto& late) -> auto& { return late.step; });
    keys.add(
        {.path = "workload.model.late.stride",
         .help = "number that mixes the order of the starts",
         .example = "7919",
         .otherwise = Default::built_in()},
        count(0), [](auto& late) -> auto& { return late.stride; });
    return keys;
  }();
  return all;
}

}  // namespace orrery::config
