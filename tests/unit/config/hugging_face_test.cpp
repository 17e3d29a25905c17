#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <variant>
#include <vector>

#include "orrery/base/error.hpp"
#include "orrery/config/read.hpp"
#include "orrery/workload/figures.hpp"
#include "orrery/workload/layer_list.hpp"
#include "orrery/workload/transformer.hpp"
#include "temporary_folder.hpp"

namespace orrery::config {
namespace {

namespace fs = std::filesystem;

/// Reads models from files in a folder of its own.
class HuggingFace : public testing::Test {
 protected:
  fs::path write(const std::string& name, const std::string& text) const {
    std::ofstream(folder_.path() / name) << text;
    return folder_.path() / name;
  }
  /// Reads the model of a config.json.
  workload::Transformer model_of(const std::string& json, const std::string& more = "") const {
    write("config.json", json);
    const auto file = write("run.yaml", "workload: {model: {base: config.json" + more + "}, parallel: {dp: 8}}\n");
    return std::get<workload::Transformer>(read_workload(file, {}).model);
  }
  /// Returns the message about a config.json that is refused.
  std::string refusal_of(const std::string& json) const {
    try {
      model_of(json);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::bad_input);
      return error.what();
    }
    return "";
  }
  /// Returns the parameters of a model, all and those that a token passes, in billions.
  std::pair<double, double> billions(const std::string& json) const {
    const auto figures = workload::figures_of_model({.model = model_of(json), .parallel = {}});
    return {static_cast<double>(figures.parameters) * 1e-9, static_cast<double>(figures.active_parameters) * 1e-9};
  }

  test::TemporaryFolder folder_;
};

/// A published model: the fields of its config.json that matter, and the parameters that its authors give.
struct Published {
  std::string name, json;
  double billions, active;  ///< active: 0 if nobody says
};

const std::vector<Published>& published() {
  static const std::vector<Published> models = {
      {"Llama 3.1 8B",
       R"({"architectures": ["LlamaForCausalLM"], "attention_bias": false, "hidden_size": 4096,
           "intermediate_size": 14336, "max_position_embeddings": 131072, "mlp_bias": false, "model_type": "llama",
           "num_attention_heads": 32, "num_hidden_layers": 32, "num_key_value_heads": 8, "rms_norm_eps": 1e-05,
           "rope_scaling": {"factor": 8.0, "rope_type": "llama3"}, "tie_word_embeddings": false,
           "torch_dtype": "bfloat16", "vocab_size": 128256})",
       8.03, 0},
      {"Llama 3.2 1B",
       R"({"hidden_size": 2048, "head_dim": 64, "intermediate_size": 8192, "max_position_embeddings": 131072,
           "model_type": "llama", "num_attention_heads": 32, "num_hidden_layers": 16, "num_key_value_heads": 8,
           "tie_word_embeddings": true, "vocab_size": 128256})",
       1.236, 0},
      {"Llama 2 7B",  // without key-value heads
       R"({"hidden_size": 4096, "intermediate_size": 11008, "max_position_embeddings": 4096, "model_type": "llama",
           "num_attention_heads": 32, "num_hidden_layers": 32, "vocab_size": 32000})",
       6.738, 0},
      {"Mistral 7B",
       R"({"hidden_size": 4096, "intermediate_size": 14336, "max_position_embeddings": 32768, "model_type": "mistral",
           "num_attention_heads": 32, "num_hidden_layers": 32, "num_key_value_heads": 8, "sliding_window": 4096,
           "tie_word_embeddings": false, "vocab_size": 32000})",
       7.24, 0},
      {"Mixtral 8x7B",
       R"({"hidden_size": 4096, "intermediate_size": 14336, "max_position_embeddings": 32768, "model_type": "mixtral",
           "num_attention_heads": 32, "num_experts_per_tok": 2, "num_hidden_layers": 32, "num_key_value_heads": 8,
           "num_local_experts": 8, "sliding_window": null, "vocab_size": 32000})",
       46.7, 12.9},
      {"Qwen2.5 7B",
       R"({"hidden_size": 3584, "intermediate_size": 18944, "max_position_embeddings": 131072, "model_type": "qwen2",
           "num_attention_heads": 28, "num_hidden_layers": 28, "num_key_value_heads": 4, "sliding_window": 131072,
           "tie_word_embeddings": false, "use_sliding_window": false, "vocab_size": 152064})",
       7.616, 0},
      {"Qwen2 57B-A14B",
       R"({"decoder_sparse_step": 1, "hidden_size": 3584, "intermediate_size": 18944, "max_position_embeddings": 32768,
           "mlp_only_layers": [], "model_type": "qwen2_moe", "moe_intermediate_size": 2560, "num_attention_heads": 28,
           "num_experts": 64, "num_experts_per_tok": 8, "num_hidden_layers": 28, "num_key_value_heads": 4,
           "shared_expert_intermediate_size": 20480, "vocab_size": 151936})",
       57.4, 14.2},
      {"Qwen3 32B",
       R"({"attention_bias": false, "head_dim": 128, "hidden_size": 5120, "intermediate_size": 25600,
           "max_position_embeddings": 40960, "max_window_layers": 64, "model_type": "qwen3", "num_attention_heads": 64,
           "num_hidden_layers": 64, "num_key_value_heads": 8, "sliding_window": null, "tie_word_embeddings": false,
           "use_sliding_window": false, "vocab_size": 151936})",
       32.76, 0},
      {"Qwen3 235B-A22B",
       R"({"decoder_sparse_step": 1, "head_dim": 128, "hidden_size": 4096, "intermediate_size": 12288,
           "max_position_embeddings": 40960, "mlp_only_layers": [], "model_type": "qwen3_moe",
           "moe_intermediate_size": 1536, "num_attention_heads": 64, "num_experts": 128, "num_experts_per_tok": 8,
           "num_hidden_layers": 94, "num_key_value_heads": 4, "vocab_size": 151936})",
       235.1, 22.2},
      {"DeepSeek-V2",
       R"({"first_k_dense_replace": 1, "hidden_size": 5120, "intermediate_size": 12288, "kv_lora_rank": 512,
           "max_position_embeddings": 163840, "model_type": "deepseek_v2", "moe_intermediate_size": 1536,
           "moe_layer_freq": 1, "n_group": 8, "n_routed_experts": 160, "n_shared_experts": 2,
           "num_attention_heads": 128, "num_experts_per_tok": 6, "num_hidden_layers": 60, "num_key_value_heads": 128,
           "q_lora_rank": 1536, "qk_nope_head_dim": 128, "qk_rope_head_dim": 64, "topk_group": 3, "v_head_dim": 128,
           "vocab_size": 102400})",
       236, 21},
      {"DeepSeek-V2-Lite",
       R"({"first_k_dense_replace": 1, "hidden_size": 2048, "intermediate_size": 10944, "kv_lora_rank": 512,
           "max_position_embeddings": 163840, "model_type": "deepseek_v2", "moe_intermediate_size": 1408,
           "moe_layer_freq": 1, "n_group": 1, "n_routed_experts": 64, "n_shared_experts": 2, "num_attention_heads": 16,
           "num_experts_per_tok": 6, "num_hidden_layers": 27, "q_lora_rank": null, "qk_nope_head_dim": 128,
           "qk_rope_head_dim": 64, "topk_group": 1, "v_head_dim": 128, "vocab_size": 102400})",
       15.7, 2.66},
      {"DeepSeek-V3",
       R"({"first_k_dense_replace": 3, "hidden_size": 7168, "intermediate_size": 18432, "kv_lora_rank": 512,
           "max_position_embeddings": 163840, "model_type": "deepseek_v3", "moe_intermediate_size": 2048,
           "moe_layer_freq": 1, "n_group": 8, "n_routed_experts": 256, "n_shared_experts": 1,
           "num_attention_heads": 128, "num_experts_per_tok": 8, "num_hidden_layers": 61, "num_nextn_predict_layers": 1,
           "q_lora_rank": 1536, "qk_nope_head_dim": 128, "qk_rope_head_dim": 64, "tie_word_embeddings": false,
           "topk_group": 4, "topk_method": "noaux_tc", "v_head_dim": 128, "vocab_size": 129280})",
       671, 37.5},
      {"GPT-NeoX 20B",
       R"({"hidden_act": "gelu_fast", "hidden_size": 6144, "intermediate_size": 24576, "max_position_embeddings": 2048,
           "model_type": "gpt_neox", "num_attention_heads": 64, "num_hidden_layers": 44, "tie_word_embeddings": false,
           "vocab_size": 50432})",
       20.55, 0},
      {"gpt-oss-20b",
       R"({"attention_bias": true, "experts_per_token": 4, "head_dim": 64, "hidden_size": 2880,
           "initial_context_length": 4096, "intermediate_size": 2880, "max_position_embeddings": 131072,
           "model_type": "gpt_oss", "num_attention_heads": 64, "num_experts_per_tok": 4, "num_hidden_layers": 24,
           "num_key_value_heads": 8, "num_local_experts": 32, "sliding_window": 128, "tie_word_embeddings": false,
           "vocab_size": 201088})",
       20.9, 4.19},  // 3.61 without the embedding
      {"gpt-oss-120b",
       R"({"head_dim": 64, "hidden_size": 2880, "intermediate_size": 2880, "max_position_embeddings": 131072,
           "model_type": "gpt_oss", "num_attention_heads": 64, "experts_per_token": 4, "num_hidden_layers": 36,
           "num_key_value_heads": 8, "num_local_experts": 128, "sliding_window": 128, "vocab_size": 201088})",
       116.8, 5.7},  // 5.13 without the embedding
      {"Gemma 7B",
       R"({"head_dim": 256, "hidden_size": 3072, "intermediate_size": 24576, "max_position_embeddings": 8192,
           "model_type": "gemma", "num_attention_heads": 16, "num_hidden_layers": 28, "num_key_value_heads": 16,
           "vocab_size": 256000})",
       8.538, 0},
      {"Gemma 2 27B",
       R"({"head_dim": 128, "hidden_size": 4608, "intermediate_size": 36864, "max_position_embeddings": 8192,
           "model_type": "gemma2", "num_attention_heads": 32, "num_hidden_layers": 46, "num_key_value_heads": 16,
           "sliding_window": 4096, "vocab_size": 256000})",
       27.2, 0},
      {"Gemma 3 12B",  // a model of text and pictures, whose file leaves out what the class says
       R"({"architectures": ["Gemma3ForConditionalGeneration"], "model_type": "gemma3",
           "text_config": {"hidden_size": 3840, "intermediate_size": 15360, "model_type": "gemma3_text",
                           "num_attention_heads": 16, "num_hidden_layers": 48, "num_key_value_heads": 8,
                           "sliding_window": 1024},
           "vision_config": {"hidden_size": 1152, "num_hidden_layers": 27}})",
       11.77, 0},
      {"Llama 4 Scout",
       R"({"model_type": "llama4",
           "text_config": {"head_dim": 128, "hidden_size": 5120, "interleave_moe_layer_step": 1,
                           "intermediate_size": 8192, "intermediate_size_mlp": 16384,
                           "max_position_embeddings": 10485760, "model_type": "llama4_text", "num_attention_heads": 40,
                           "num_experts_per_tok": 1, "num_hidden_layers": 48, "num_key_value_heads": 8,
                           "num_local_experts": 16, "vocab_size": 202048}})",
       107.8, 17.2},
  };
  return models;
}

TEST_F(HuggingFace, ModelsHaveTheirPublishedParameters) {
  // The counts that authors publish have three or four digits, and leave out or count small vectors: 1 % is enough to
  // find a wrong width, a wrong number of experts or a tied embedding.
  for (const Published& model : published()) {
    const auto [all, active] = billions(model.json);
    EXPECT_NEAR(all / model.billions, 1, 0.01) << model.name << ": " << all;
    if (model.active == 0) continue;
    EXPECT_NEAR(active / model.active, 1, 0.02) << model.name << ": " << active;
  }
}

TEST_F(HuggingFace, ModelsEqualTheirPresets) {
  // A config.json must stand for the model that its preset describes, but for what only the software decides.
  for (const auto& [name, preset] : {std::pair{"Qwen3 32B", "qwen3-32b"},
                                     {"Qwen3 235B-A22B", "qwen3-235b-a22b"},
                                     {"DeepSeek-V3", "deepseek-v3"},
                                     {"Llama 4 Scout", "llama4-scout"}}) {
    std::string json;
    for (const Published& model : published())
      if (model.name == name) json = model.json;
    const auto file = write("preset.yaml", std::string("workload: {model: ") + ORRERY_SOURCE_DIR + "/configs/models/" +
                                               preset + ".yaml, parallel: {dp: 8}}\n");
    auto expected = std::get<workload::Transformer>(read_workload(file, {}).model);
    expected.recomputed = {};
    auto found = model_of(json, ", sequence: " + std::to_string(expected.sequence));
    found.mlp.dense_width = expected.mlp.dense_width;  // without effect where all layers have experts
    EXPECT_TRUE(found == expected) << name;
  }
}

TEST_F(HuggingFace, ModelsMayBeNamedByTheirFolder) {
  // A folder of the hub, which holds a config.json, stands for that file.
  write("config.json", published()[0].json);
  const auto file = write("run.yaml", "workload: {model: " + folder_.path().string() + ", parallel: {dp: 8}}\n");
  EXPECT_EQ(std::get<workload::Transformer>(read_workload(file, {}).model).layers, 32U);
}

TEST_F(HuggingFace, ModelsOfOtherKindsAreRefusedOnce) {
  // A type that is not known, none at all, missing fields, and shared experts that are no whole number of others: each
  // gets one message, which names what is wrong and what is known.
  const std::string unknown = refusal_of(R"({"model_type": "bert", "hidden_size": 768})");
  EXPECT_NE(unknown.find("found the type 'bert'"), std::string::npos) << unknown;
  EXPECT_NE(unknown.find("llama, mistral, mixtral"), std::string::npos) << unknown;
  const std::string without = refusal_of(R"({"architectures": ["X"], "hidden_size": 768})");
  EXPECT_NE(without.find("without model_type"), std::string::npos) << without;
  const std::string gaps = refusal_of(R"({"model_type": "llama", "hidden_size": 4096, "num_attention_heads": 32})");
  EXPECT_NE(gaps.find("no num_hidden_layers, vocab_size, intermediate_size;"), std::string::npos) << gaps;
  EXPECT_EQ(gaps.find("unknown key"), std::string::npos) << gaps;
  const std::string experts = refusal_of(
      R"({"model_type": "qwen2_moe", "hidden_size": 4096, "num_attention_heads": 32, "num_hidden_layers": 2,
          "vocab_size": 1000, "intermediate_size": 4096, "moe_intermediate_size": 1000, "num_experts": 8,
          "num_experts_per_tok": 2, "shared_expert_intermediate_size": 1500})");
  EXPECT_NE(experts.find("no multiple of moe_intermediate_size 1000"), std::string::npos) << experts;
}

TEST_F(HuggingFace, ArgumentsOfTrainingProgramsAreNamed) {
  // Arguments of torchtitan (TOML) and of Megatron, as options and as YAML: the message names the tool and a document.
  for (const auto& [text, tool] :
       {std::pair{"[job]\ndump_folder = \"x\"\n[model]\nname = \"llama3\"\nflavor = \"8B\"\n", "torchtitan"},
        {"torchrun pretrain_gpt.py \\\n  --num-layers 32 \\\n  --hidden-size 4096\n", "Megatron-LM"},
        {"num_layers: 32\nhidden_size: 4096\ntensor_model_parallel_size: 8\n", "Megatron-LM"}}) {
    write("arguments", text);
    const auto file = write("run.yaml", "workload: {model: arguments, parallel: {dp: 8}}\n");
    std::string message;
    try {
      read_workload(file, {});
    } catch (const Error& error) {
      message = error.what();
    }
    EXPECT_NE(message.find(tool), std::string::npos) << message;
    EXPECT_NE(message.find("docs/workloads.md"), std::string::npos) << message;
  }
}

TEST_F(HuggingFace, SequencesAreThoseOfPretraining) {
  // The context that a model can have is no length of sequences that it was trained with: Llama 3.1 has 131,072 tokens.
  EXPECT_EQ(model_of(published()[0].json).sequence, 8192U);
  EXPECT_EQ(model_of(published()[2].json).sequence, 4096U);
  EXPECT_EQ(model_of(published()[0].json, ", sequence: 16384").sequence, 16384U);
}

}  // namespace
}  // namespace orrery::config
