#include "hugging_face.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <deque>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "orrery/base/text.hpp"
#include "section.hpp"

namespace orrery::config {
namespace {

/// The longest sequence that is taken where only the context length is known: that of usual pretraining.
constexpr std::uint32_t usual_sequence = 8192;

/// A field of config.json, and the value that the classes of Transformers give it where it is absent.
struct FieldDefault {
  std::string_view field, value;
};

/// How the experts of a family are described.
struct ExpertFields {
  std::string_view experts;                            ///< field with their number; empty: the family has none
  std::string_view width = "moe_intermediate_size";    ///< field with their inner width
  std::string_view dense_width = "intermediate_size";  ///< field with that of layers without experts
  std::string_view interval = "decoder_sparse_step";   ///< field with every how many layers there are experts
  std::string_view shared = {};                        ///< field with the number of shared experts
  std::string_view shared_width = {};                  ///< field with the inner width of all shared experts together
  std::string_view dense_layers = {};                  ///< field with the number of first layers without experts
  std::uint32_t always_shared = 0;                     ///< number of shared experts that no field gives
};

/// What the fields of a type of models leave unsaid, as the classes of Transformers have it.
struct ModelType {
  std::string_view name;  ///< value of model_type
  bool gated = true;
  bool tied = false;    ///< unless tie_word_embeddings says otherwise
  bool biases = false;  ///< unless attention_bias says otherwise
  bool head_norms = false;
  bool has_latent = false;  ///< multi-head latent attention
  bool router_bias = false;
  bool windows_unless_told = true;  ///< a sliding window holds unless use_sliding_window denies it
  ExpertFields experts = {};
  std::span<const FieldDefault> defaults = {};
};

constexpr std::array gemma3_defaults = {FieldDefault{"vocab_size", "262208"}, FieldDefault{"num_attention_heads", "8"},
                                        FieldDefault{"num_key_value_heads", "4"}, FieldDefault{"head_dim", "256"},
                                        FieldDefault{"max_position_embeddings", "131072"}};
constexpr std::array gemma_defaults = {FieldDefault{"vocab_size", "256000"}, FieldDefault{"head_dim", "256"}};

constexpr ExpertFields deepseek_experts = {.experts = "n_routed_experts",
                                           .interval = "moe_layer_freq",
                                           .shared = "n_shared_experts",
                                           .dense_layers = "first_k_dense_replace"};
constexpr ExpertFields local_experts = {.experts = "num_local_experts", .width = "intermediate_size"};

constexpr std::array model_types = {
    ModelType{.name = "llama"},
    ModelType{.name = "mistral"},
    ModelType{.name = "mixtral", .experts = local_experts},
    ModelType{.name = "qwen2", .windows_unless_told = false},
    ModelType{.name = "qwen2_moe",
              .windows_unless_told = false,
              .experts = {.experts = "num_experts", .shared_width = "shared_expert_intermediate_size"}},
    ModelType{.name = "qwen3", .head_norms = true, .windows_unless_told = false},
    ModelType{
        .name = "qwen3_moe", .head_norms = true, .windows_unless_told = false, .experts = {.experts = "num_experts"}},
    ModelType{.name = "deepseek_v2", .has_latent = true, .experts = deepseek_experts},
    ModelType{.name = "deepseek_v3", .has_latent = true, .router_bias = true, .experts = deepseek_experts},
    ModelType{.name = "kimi_k2", .has_latent = true, .router_bias = true, .experts = deepseek_experts},
    ModelType{.name = "gpt_neox", .gated = false, .biases = true},
    ModelType{.name = "gpt_oss", .biases = true, .experts = local_experts},
    ModelType{.name = "gemma", .tied = true, .defaults = gemma_defaults},
    ModelType{.name = "gemma2", .tied = true, .defaults = gemma_defaults},
    ModelType{.name = "gemma3_text", .tied = true, .head_norms = true, .defaults = gemma3_defaults},
    ModelType{.name = "llama4_text",
              .experts = {.experts = "num_local_experts",
                          .width = "intermediate_size",
                          .dense_width = "intermediate_size_mlp",
                          .interval = "interleave_moe_layer_step",
                          .always_shared = 1}},
};

/// Makes keys of workload.model of the fields of one config.json.
class Translation {
 public:
  Translation(const Value& config, const ModelType& type) : config_(config), type_(type) {
    model_.kind = Value::Kind::mapping;
    model_.line = config.line;
    model_.origin = config.origin;
  }

  Value translate() {
    put("kind", config_, "transformer");
    need("layers", "num_hidden_layers");
    need("hidden", "hidden_size");
    need("heads", "num_attention_heads");
    need("vocabulary", "vocab_size");
    if (type_.has_latent)
      put_latent();
    else
      put_plain_attention();
    if (has_experts())
      put_experts();
    else
      need("ffn", "intermediate_size");
    put_flags();
    put_sequence();
    refuse_missing();
    note_windows();
    return std::move(model_);
  }

 private:
  /// Returns a field; null if it is absent or null and has no default.
  const Value* find(std::string_view field) {
    if (const Value* const value = config_.find(field); value != nullptr && value->kind != Value::Kind::null)
      return value;
    const auto known = std::ranges::find(type_.defaults, field, &FieldDefault::field);
    if (known == type_.defaults.end()) return nullptr;
    defaults_.push_back(scalar(config_, std::string(known->value)));
    return &defaults_.back();
  }
  static std::uint32_t count_of(const Value& value, std::string_view field, std::uint32_t least = 0) {
    return as_count(value, std::string(field), least);
  }

  /// Returns a scalar that stands where `at` stands.
  static Value scalar(const Value& at, std::string text) {
    Value value;
    value.kind = Value::Kind::scalar;
    value.text = std::move(text);
    value.line = at.line;
    value.origin = at.origin;
    return value;
  }
  void put(std::string_view key, Value value) { model_.entries.push_back({std::string(key), value.line, value}); }
  void put(std::string_view key, const Value& at, std::string text) { put(key, scalar(at, std::move(text))); }
  void put_true(std::string_view key, bool holds) {
    if (holds) put(key, config_, "true");
  }
  /// Takes a field as a key; notes it if it is absent.
  void need(std::string_view key, std::string_view field) {
    if (const Value* const value = find(field))
      put(key, *value);
    else
      missing_.emplace_back(field);
  }
  void take(std::string_view key, std::string_view field) {
    if (const Value* const value = find(field)) put(key, *value);
  }
  bool is_set(std::string_view field, bool otherwise) {
    const Value* const value = find(field);
    return value == nullptr ? otherwise : as_bool(*value, std::string(field));
  }
  bool has_experts() {
    const Value* const experts = type_.experts.experts.empty() ? nullptr : find(type_.experts.experts);
    return experts != nullptr || type_.experts.always_shared > 0 ||
           (!type_.experts.experts.empty() && !type_.has_latent);
  }

  void put_plain_attention() {
    take("kv-heads", "num_key_value_heads");
    take("head-size", "head_dim");
  }

  void put_latent() {
    need("head-size", "qk_nope_head_dim");
    Value latent;
    latent.kind = Value::Kind::mapping;
    latent.line = config_.line;
    latent.origin = config_.origin;
    std::swap(model_.entries, latent.entries);  // the keys below belong to `latent`
    need("key-value", "kv_lora_rank");
    take("query", "q_lora_rank");
    need("rotary", "qk_rope_head_dim");
    take("value", "v_head_dim");
    std::swap(model_.entries, latent.entries);
    put("latent", std::move(latent));
  }

  void put_experts() {
    const ExpertFields& fields = type_.experts;
    need("experts", fields.experts);
    if (config_.find("num_experts_per_tok") == nullptr && config_.find("experts_per_token") != nullptr)
      need("top-k", "experts_per_token");
    else
      need("top-k", "num_experts_per_tok");
    need("ffn", fields.width);
    if (const Value* const interval = find(fields.interval);
        interval != nullptr && count_of(*interval, fields.interval) > 1)
      put("expert-interval", *interval);
    if (fields.always_shared > 0) put("shared-experts", config_, fmt::to_string(fields.always_shared));
    if (!fields.shared.empty()) take("shared-experts", fields.shared);
    if (!fields.shared_width.empty()) put_shared_width(fields);
    if (!fields.dense_layers.empty()) take("dense-layers", fields.dense_layers);
    put_dense_layers();
    if (fields.dense_width != fields.width) take("dense-ffn", fields.dense_width);
    put_true("router-bias", type_.router_bias);
    // Groups of experts lie on one server each, as DeepSeek-V3 was trained.
    if (const Value* const groups = find("n_group"); type_.router_bias && groups && count_of(*groups, "n_group") > 1)
      take("expert-servers", "topk_group");
  }

  /// Takes one shared expert of several times the width as so many of them.
  void put_shared_width(const ExpertFields& fields) {
    const Value *const all = find(fields.shared_width), *const one = find(fields.width);
    if (all == nullptr || one == nullptr) return;
    const std::uint32_t together = count_of(*all, fields.shared_width), each = count_of(*one, fields.width, 1);
    if (together % each != 0)
      throw Error(ErrorCode::bad_input, all->place(fields.shared_width),
                  fmt::format("found {}, which is no multiple of {} {}", together, fields.width, each),
                  "shared experts as wide as the others",
                  "Write the model as a file of Orrery (docs/workloads.md, Models).");
    put("shared-experts", *all, fmt::to_string(together / each));
  }

  /// Takes a list of layers without experts, if these are the first ones.
  void put_dense_layers() {
    const Value* const layers = find("mlp_only_layers");
    if (layers == nullptr || layers->items.empty()) return;
    for (std::uint32_t i = 0; i < layers->items.size(); ++i)
      if (count_of(layers->items[i], "mlp_only_layers") != i)
        throw Error(ErrorCode::bad_input, layers->place("mlp_only_layers"), "found layers that are not the first ones",
                    "layers 0, 1, ... without experts",
                    "Write the model as a file of Orrery (docs/workloads.md, Models).");
    put("dense-layers", *layers, fmt::to_string(layers->items.size()));
  }

  void put_flags() {
    put_true("gated", type_.gated);
    put_true("rotary", !type_.has_latent || find("qk_rope_head_dim") != nullptr);
    put_true("head-norms", type_.head_norms || is_set("use_qk_norm", false));
    put_true("biases", is_set("attention_bias", type_.biases));
    put_true("tied-embeddings", is_set("tie_word_embeddings", type_.tied));
  }

  void put_sequence() {
    const Value* const most = find("max_position_embeddings");
    const std::uint32_t context = most == nullptr ? usual_sequence : count_of(*most, "max_position_embeddings", 1);
    const std::uint32_t sequence = std::min(context, usual_sequence);
    put("sequence", most == nullptr ? config_ : *most, fmt::to_string(sequence));
    note(
        fmt::format("the file does not say how long the sequences of a step are: {} tokens are taken. "
                    "workload.model.sequence changes that",
                    sequence));
    sequence_ = sequence;
  }

  void refuse_missing() const {
    if (missing_.empty()) return;
    throw Error(ErrorCode::bad_input, {.file = config_.origin->name, .line = config_.line},
                fmt::format("the model of type {} has no {}", type_.name, fmt::join(missing_, ", ")),
                "the config.json of a whole model of Hugging Face Transformers",
                "Add the fields, or write the model as a file of Orrery (docs/workloads.md, Models).");
  }

  void note_windows() {
    const Value* const window = find("sliding_window");
    if (window == nullptr || !is_set("use_sliding_window", type_.windows_unless_told)) return;
    if (count_of(*window, "sliding_window") < sequence_)
      note(fmt::format("sliding windows ({} tokens) are not simulated: all layers attend to the whole sequence",
                       window->text));
  }

  void note(std::string text) { model_.notes.push_back(fmt::format("{}: {}", config_.origin->name, text)); }

  const Value& config_;
  const ModelType& type_;
  Value model_;
  std::vector<std::string_view> missing_;
  std::deque<Value> defaults_;  ///< values that no field gives; their addresses last
  std::uint32_t sequence_ = 0;
};

/// Returns the part of a config.json that describes the model of text.
const Value& text_part(const Value& config) {
  const Value* const text = config.find("text_config");
  return text != nullptr && text->kind == Value::Kind::mapping ? *text : config;
}

}  // namespace

bool is_hugging_face(const Value& mapping) {
  return mapping.kind == Value::Kind::mapping && mapping.find("kind") == nullptr &&
         (mapping.find("model_type") != nullptr || mapping.find("architectures") != nullptr);
}

Value model_of_hugging_face(const Value& config) {
  const Value& text = text_part(config);
  const Value* const type = text.find("model_type");
  std::vector<std::string_view> known;
  for (const ModelType& each : model_types) known.push_back(each.name);
  const auto found = std::ranges::find(model_types, type == nullptr ? std::string_view() : std::string_view(type->text),
                                       &ModelType::name);
  if (found == model_types.end())
    throw Error(ErrorCode::bad_input, type == nullptr ? Place{.file = config.origin->name} : type->place("model_type"),
                type == nullptr ? std::string("a config.json of Hugging Face Transformers without model_type")
                                : fmt::format("found the type '{}' of Hugging Face Transformers", cited(type->text)),
                fmt::format("one of {}", fmt::join(known, ", ")),
                "Write the model as a file of Orrery (docs/workloads.md, Models).");
  return Translation(text, *found).translate();
}

}  // namespace orrery::config
