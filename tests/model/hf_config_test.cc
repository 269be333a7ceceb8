#include <cmath>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "core/model/shapes.h"
#include "io/model/model_config.h"
#include "tests/errors.h"
#include "tests/files.h"
#include "tests/model/golden.h"

namespace sheaf {
namespace {

using nlohmann::json;

class HfConfig : public testing::Test {
 protected:
  ModelConfig read(const json& config) {
    return read_hf_config(folder_.write("config.json", config.dump())).config;
  }
  void refused(const json& config, const std::vector<std::string>& parts) {
    expect_refusal([&] { read(config); }, parts);
  }
  /// A copy of a golden configuration with some fields changed; a discarded value removes the field.
  static json with(const char* name, const json& changes) {
    json config = read_golden_json(std::string(name) + "/config.json");
    config.update(changes);
    return config;
  }
  TempFolder folder_;
};

TEST_F(HfConfig, FamiliesDifferInTheirFields) {
  const ModelConfig qwen3 = read(with("qwen3", json::object()));
  EXPECT_EQ(qwen3.family, "qwen3");
  EXPECT_EQ(qwen3.qk_norm, QkNorm::per_head);
  EXPECT_EQ(qwen3.head_dim, 16);
  const ModelConfig olmo2 = read(with("olmo2", json::object()));
  EXPECT_EQ(olmo2.qk_norm, QkNorm::whole);
  EXPECT_EQ(olmo2.norms, kNormsAfter);
  const ModelConfig smollm = read(with("smollm", json::object()));
  EXPECT_TRUE(smollm.tied_output);
  EXPECT_EQ(smollm.kv_floats_per_token(), 2 * 2 * 1 * 16);
  const ModelConfig phi = read(with("phi3_longrope", json::object()));
  EXPECT_EQ(phi.rotary_dim, 6);
  EXPECT_EQ(phi.context, 64) << "the long factors belong to longer prompts";
  EXPECT_GT(phi.ropes.at(0).scale, 1.1f);
}

TEST_F(HfConfig, YiIsLlamaUnderAnotherName) {
  const json yi = {{"model_type", "Yi"}, {"architectures", {"YiForCausalLM"}}};
  const ModelConfig named = read(with("smollm", yi)), llama = read(with("smollm", json::object()));
  EXPECT_EQ(named.family, "Yi");
  EXPECT_EQ(named.layers.size(), llama.layers.size());
  EXPECT_EQ(named.context, llama.context);
  EXPECT_EQ(named.tied_output, llama.tied_output);
  refused(with("smollm", {{"model_type", "yi2"}}), {"yi2", "Yi"});
}

TEST_F(HfConfig, WindowsBelongToLayers) {
  using Windows = std::vector<int32_t>;
  const auto windows = [&](const json& config) {
    Windows found;
    for (const LayerConfig& layer : read(config).layers) found.push_back(layer.window);
    return found;
  };
  EXPECT_EQ(windows(with("mistral", json::object())), (Windows{128, 128}));
  EXPECT_EQ(read(with("mistral", json::object())).context, 256) << "the window leaves the context as it is";
  EXPECT_EQ(windows(with("mistral", {{"sliding_window", nullptr}})), (Windows{0, 0}));
  EXPECT_EQ(windows(with("mistral", {{"sliding_window", 256}})), (Windows{0, 0})) << "nothing lies outside";
  json config = with("mistral", {{"max_position_embeddings", 32768}});
  config.erase("sliding_window");
  EXPECT_EQ(windows(config), (Windows{4096, 4096})) << "Mistral's own default";
  EXPECT_EQ(windows(with("qwen2", {{"sliding_window", 64}})), (Windows{0, 0})) << "switched off";
  config = with("qwen2", {{"sliding_window", 64}, {"use_sliding_window", true}, {"max_window_layers", 1}});
  config.erase("layer_types");
  EXPECT_EQ(windows(config), (Windows{0, 64}));
  config["layer_types"] = {"sliding_attention", "full_attention"};
  EXPECT_EQ(windows(config), (Windows{64, 0}));
  EXPECT_EQ(windows(with("phi3", {{"sliding_window", 100}})), (Windows{100, 100}));
}

TEST_F(HfConfig, ContradictionsAboutLayersAreRefused) {
  const json sliding{"sliding_attention", "sliding_attention"};
  refused(with("mistral", {{"sliding_window", 0}}), {"\"sliding_window\" is 0", "must be positive"});
  refused(with("mistral", {{"sliding_window", -5}}), {"\"sliding_window\" is -5", "must be positive"});
  refused(with("mistral", {{"layer_types", {"sliding_attention"}}}),
          {"\"layer_types\"", "one word for each of the 2 layers"});
  refused(with("mistral", {{"layer_types", sliding}, {"sliding_window", nullptr}}),
          {"\"layer_types\" names sliding layers", "\"sliding_window\" is missing"});
  refused(with("qwen2", {{"layer_types", {"chunked_attention", "full_attention"}}}),
          {"chunked_attention", "supported: full_attention"});
  refused(with("qwen2", {{"layer_types", sliding}, {"sliding_window", 64}}), {"\"layer_types\"", "layer 0"});
  refused(with("granite", {{"layer_types", sliding}, {"sliding_window", 64}}), {"layer 0 slides", "granite"});
  refused(with("smollm3", {{"no_rope_layers", {1, 0}}}), {"\"no_rope_layers\"", "each of the 4 layers"});
  refused(with("granite", {{"embedding_multiplier", 0}}), {"\"embedding_multiplier\" is 0", "positive"});
}

TEST_F(HfConfig, GemmaIsDescribedByItsFields) {
  const ModelConfig gemma2 = read(with("gemma2", {{"query_pre_attn_scalar", 64}}));
  EXPECT_EQ(gemma2.norms, kNormsAround);
  EXPECT_EQ(gemma2.activation, Activation::gelu_tanh);
  EXPECT_FLOAT_EQ(gemma2.embedding_scale, std::sqrt(32.0f));
  EXPECT_FLOAT_EQ(gemma2.score_factor(), 0.125f);
  EXPECT_EQ(gemma2.score_cap, 3);
  EXPECT_EQ(gemma2.logit_cap, 2.5f);
  EXPECT_EQ(read(with("gemma2", {{"final_logit_softcapping", nullptr}})).logit_cap, 0);
  json config = with("gemma2", json::object());
  config.erase("attn_logit_softcapping");
  EXPECT_EQ(read(config).score_cap, 50) << "Gemma 2's own default";
  refused(with("gemma2", {{"attn_logit_softcapping", 0}}),
          {"\"attn_logit_softcapping\" is 0", "must be positive"});
  refused(with("gemma2", {{"hidden_activation", "silu"}}), {"\"hidden_activation\"", "\"silu\""});
  refused(with("gemma3", {{"use_bidirectional_attention", true}}), {"use_bidirectional_attention"});
  refused(with("gemma3", {{"rope_parameters", {{"full_attention", 3}}}}), {"full_attention", "an object"});

  const ModelConfig gemma3 = read(with("gemma3", json::object()));
  ASSERT_EQ(gemma3.ropes.size(), 2U);
  EXPECT_EQ(gemma3.layers[4].rope, 1);
  EXPECT_EQ(gemma3.layers[5].rope, 0);
  EXPECT_EQ(gemma3.layers[5].window, 0);
  // As files were written before: the pattern as a number, and only the global table.
  config = with("gemma3", {{"rope_theta", 1000.0},
                           {"rope_scaling", {{"rope_type", "linear"}, {"factor", 8.0}}},
                           {"rope_local_base_freq", 10000.0},
                           {"sliding_window_pattern", 6}});
  config.erase("layer_types");
  config.erase("rope_parameters");
  const ModelConfig old = read(config);
  for (size_t i = 0; i < 2; ++i) EXPECT_EQ(old.ropes.at(i).freqs, gemma3.ropes[i].freqs);
  for (size_t i = 0; i < 6; ++i) {
    EXPECT_EQ(old.layers[i].window, gemma3.layers[i].window);
    EXPECT_EQ(old.layers[i].rope, gemma3.layers[i].rope);
  }
}

TEST_F(HfConfig, ExpertsAreReadLayerByLayer) {
  const auto layers = [&](const json& config) {
    std::vector<bool> list;
    for (const LayerConfig& layer : read(config).layers) list.push_back(layer.experts);
    return list;
  };
  using List = std::vector<bool>;
  EXPECT_EQ(layers(with("qwen3_moe", json::object())), (List{true, false, true}));
  EXPECT_EQ(layers(with("qwen3_moe", {{"mlp_only_layers", {0, 2}}})), (List{false, true, false}));
  EXPECT_EQ(layers(with("qwen3_moe", {{"mlp_only_layers", json::array()}, {"decoder_sparse_step", 2}})),
            (List{false, true, false}));
  EXPECT_EQ(layers(with("glm4_moe", json::object())), (List{false, true, true}));
  const Experts glm = read(with("glm4_moe", json::object())).experts;
  EXPECT_EQ(glm.shared_ffn, 40) << "two shared ones of 20";
  EXPECT_EQ(glm.scores, RouterScores::sigmoid);
  EXPECT_FLOAT_EQ(glm.factor, 1.5f);
  EXPECT_TRUE(read(with("mixtral", json::object())).experts.normalized);
  EXPECT_TRUE(read(with("qwen2_moe", json::object())).experts.shared_gate);
  // As files were written before transformers 5.
  json old = with("qwen3_moe", {{"num_experts", 6}});
  old.erase("num_local_experts");
  EXPECT_EQ(read(old).experts.count, 6);
}

TEST_F(HfConfig, ContradictionsAboutExpertsAreRefused) {
  refused(with("mixtral", {{"num_experts_per_tok", 7}}), {"goes through 7 experts", "only 6"});
  refused(with("mixtral", {{"num_local_experts", 0}}), {"\"num_local_experts\" is 0", "positive"});
  refused(with("qwen3_moe", {{"mlp_only_layers", {3}}}), {"\"mlp_only_layers\" contains 3", "from 0 to 2"});
  refused(with("qwen3_moe", {{"mlp_only_layers", "all"}}), {"\"mlp_only_layers\"", "a list"});
  refused(with("qwen3_moe", {{"decoder_sparse_step", 0}}), {"\"decoder_sparse_step\" is 0"});
  refused(with("glm4_moe", {{"n_group", 4}}), {"\"n_group\" is 4", "groups of experts"});
  refused(with("glm4_moe", {{"routed_scaling_factor", -1}}), {"\"routed_scaling_factor\" is -1"});
  refused(with("llama", {{"num_local_experts", 8}}), {"\"num_local_experts\": 8", "not supported"});
  refused(with("qwen3_moe", {{"mlp_only_layers", {0, 1, 2}}}), {"no layer has them"});
}

TEST_F(HfConfig, TheTextPartOfAModelThatSeesIsTaken) {
  const FileConfig seeing =
      read_hf_config(folder_.write("config.json", with("gemma3_vision", json::object()).dump()));
  EXPECT_TRUE(seeing.wrapped);
  EXPECT_EQ(seeing.config.family, "gemma3_text");
  EXPECT_FALSE(read_hf_config(golden("gemma3/config.json")).wrapped);
  // As google/gemma-3-4b-it has it.
  const ModelConfig sparse = read({{"model_type", "gemma3"},
                                   {"text_config",
                                    {{"model_type", "gemma3_text"},
                                     {"hidden_size", 2560},
                                     {"intermediate_size", 10240},
                                     {"num_hidden_layers", 34},
                                     {"rope_scaling", {{"factor", 8.0}, {"rope_type", "linear"}}},
                                     {"sliding_window", 1024}}},
                                   {"vision_config", json::object()}});
  EXPECT_EQ(sparse.heads, 8);
  EXPECT_EQ(sparse.kv_heads, 4);
  EXPECT_EQ(sparse.head_dim, 256);
  EXPECT_EQ(sparse.vocab, 262208);
  EXPECT_EQ(sparse.context, 131072);
  EXPECT_TRUE(sparse.tied_output);
  EXPECT_EQ(sparse.layers[0].window, 1024);
  refused({{"model_type", "gemma3"}, {"vision_config", json::object()}},
          {"config.json", "\"text_config\" is missing", "no text model"});
  refused({{"model_type", "gemma3"}, {"text_config", 1}}, {"\"text_config\" is 1", "an object"});
  refused({{"model_type", "llava"}, {"text_config", {{"model_type", "opt"}}}},
          {"\"text_config\": model type \"opt\" is not supported"});
}

TEST_F(HfConfig, LongFactorsAreForPromptsBeyondTheOriginalContext) {
  ModelConfig config = read(with("phi3_longrope", json::object()));
  EXPECT_EQ(config.context, 64);
  EXPECT_EQ(config.long_context, 256);
  const std::vector<float> slow = config.long_ropes.at(0).freqs;
  EXPECT_NE(slow, config.ropes.at(0).freqs);
  ModelConfig same = config;
  use_context(same, 64, "here");
  EXPECT_EQ(same.ropes.at(0).freqs, config.ropes.at(0).freqs);
  use_context(config, 65, "here");
  EXPECT_EQ(config.ropes.at(0).freqs, slow);
  EXPECT_EQ(config.context, 65);
  EXPECT_EQ(read(with("qwen2_yarn", {{"max_position_embeddings", 64}})).context, 256)
      << "yarn reaches 4 x 64";
  expect_refusal([&] { use_context(config, 257, "here"); }, {"here", "257 positions", "from 1 to 65"});
}

TEST_F(HfConfig, MissingFieldsTakeTheFamilysDefaults) {
  json config = with("llama", json::object());
  for (const char* key : {"num_key_value_heads", "head_dim", "tie_word_embeddings", "rope_parameters",
                          "hidden_act", "architectures"})
    config.erase(key);
  const ModelConfig llama = read(config);
  EXPECT_EQ(llama.kv_heads, llama.heads);
  EXPECT_EQ(llama.head_dim, 8);
  EXPECT_FALSE(llama.tied_output);
  config = with("qwen3", json::object());
  config.erase("head_dim");
  EXPECT_EQ(read(config).head_dim, 128);
}

TEST_F(HfConfig, UnsupportedModelsAreRefusedByName) {
  refused(with("llama", {{"model_type", "deepseek_v3"}}),
          {"\"deepseek_v3\" is not supported", "llama, qwen2"});
  refused(with("llama", {{"architectures", {"LlamaForSequenceClassification"}}}),
          {"LlamaForSequenceClassification", "LlamaForCausalLM"});
  refused(with("llama", {{"hidden_act", "gelu"}}), {"activation \"gelu\""});
  refused(with("llama", {{"attention_bias", true}}), {"attention_bias"});
  refused(with("llama", {{"mlp_bias", true}}), {"mlp_bias"});
  refused(with("qwen3", {{"num_experts", 8}}), {"num_experts"});
  refused(with("llama", {{"quantization_config", {{"quant_method", "hqq"}}}}),
          {"quantization_config", "hqq"});
  refused(with("llama", {{"final_logit_softcapping", 30.0}}), {"final_logit_softcapping"});
  refused(with("qwen2", {{"layer_types", {"linear_attention", "full_attention"}}}), {"linear_attention"});
  const auto rope = [](json section) { return json{{"rope_parameters", std::move(section)}}; };
  refused(with("llama", rope({{"rope_type", "dynamic"}, {"factor", 2.0}})),
          {"rope type \"dynamic\"", "yarn"});
  refused(with("llama", rope({{"rope_type", "default"}, {"mrope_section", {1, 2}}})), {"mrope_section"});
  refused(with("llama", rope({{"full_attention", {{"rope_theta", 1e4}}}})), {"full_attention"});
  refused(with("llama", {{"partial_rotary_factor", 0.5}}), {"partial_rotary_factor"});
  refused(with("llama", rope({{"rope_type", "linear"}})), {"factor", "missing"});
  refused(with("llama", rope({{"rope_type", "linear"}, {"factor", 0}})), {"factor", "positive"});
  refused(with("llama", rope({{"rope_theta", 0.5}})), {"rope_theta"});
  refused(with("phi3_longrope",
               rope({{"rope_type", "longrope"}, {"short_factor", {1, 2}}, {"partial_rotary_factor", 0.75}})),
          {"short_factor", "2 numbers; it must have 3"});
}

TEST_F(HfConfig, RefusesNumbersThatCannotBe) {
  refused(with("llama", {{"hidden_size", "32"}}), {"hidden_size", "whole number"});
  refused(with("llama", {{"num_hidden_layers", 0}}), {"num_hidden_layers"});
  refused(with("llama", {{"num_hidden_layers", 1u << 31}}), {"num_hidden_layers"});
  refused(with("llama", {{"vocab_size", 1 << 30}}), {"vocabulary"});
  refused(with("llama", {{"num_key_value_heads", 3}}), {"4 heads", "3 key/value heads"});
  refused(with("llama", {{"head_dim", 7}}), {"rotary size is 7"});
  refused(with("llama", {{"head_dim", 1 << 20}}), {"head_dim"});
  refused(with("llama", {{"rms_norm_eps", -1}}), {"epsilon"});
  json config = with("llama", json::object());
  config.erase("hidden_size");
  refused(config, {"\"hidden_size\" is missing"});
}

TEST_F(HfConfig, RefusesBrokenJson) {
  const auto text = [&](const std::string& content) {
    read_hf_config(folder_.write("config.json", content));
  };
  expect_refusal([&] { text(""); }, {"config.json", "not valid JSON"});
  expect_refusal([&] { text("[]"); }, {"not a JSON object"});
  expect_refusal([&] { text(R"({"a":1,"a":2})"); }, {"\"a\" appears twice"});
  expect_refusal([&] { text("{\"a\":" + std::string(100000, '[')); }, {"nested more than 16 levels deep"});
  expect_refusal([&] { text(std::string((1 << 20) + 1, ' ')); }, {"at most"});
  expect_refusal([&] { read_hf_config(folder_.path() + "/none.json"); }, {"none.json", "no such file"});
}

TEST_F(HfConfig, NamedShapesWithWindowsAreThoseOfTheirConfigJson) {
  const auto gemma = [](json text) {
    text.update({{"model_type", "gemma3_text"},
                 {"sliding_window", 1024},
                 {"rope_scaling", {{"factor", 8.0}, {"rope_type", "linear"}}}});
    return json{{"architectures", {"Gemma3ForConditionalGeneration"}},
                {"model_type", "gemma3"},
                {"text_config", text}};
  };
  const auto gpt_oss = [](int layers, int experts) {
    return json{{"architectures", {"GptOssForCausalLM"}},
                {"model_type", "gpt_oss"},
                {"hidden_size", 2880},
                {"intermediate_size", 2880},
                {"num_attention_heads", 64},
                {"num_experts_per_tok", 4},
                {"num_hidden_layers", layers},
                {"num_key_value_heads", 8},
                {"num_local_experts", experts},
                {"head_dim", 64},
                {"rms_norm_eps", 1e-6},
                {"rope_theta", 1e6},
                {"rope_scaling", {{"factor", 1.0}, {"rope_type", "linear"}}},
                {"sliding_window", 128},
                {"tie_word_embeddings", false},
                {"vocab_size", 201088},
                {"max_position_embeddings", 131072},
                {"hidden_act", "silu"}};
  };
  const auto qwen3_moe = [](json file) {
    file.update({{"architectures", {"Qwen3MoeForCausalLM"}},
                 {"model_type", "qwen3_moe"},
                 {"decoder_sparse_step", 1},
                 {"head_dim", 128},
                 {"hidden_act", "silu"},
                 {"max_position_embeddings", 40960},
                 {"mlp_only_layers", json::array()},
                 {"norm_topk_prob", true},
                 {"num_experts", 128},
                 {"num_experts_per_tok", 8},
                 {"num_key_value_heads", 4},
                 {"rms_norm_eps", 1e-6},
                 {"rope_theta", 1e6},
                 {"tie_word_embeddings", false},
                 {"vocab_size", 151936}});
    return file;
  };
  const std::pair<const char*, json> all[] = {
      {"gemma-3-4b", gemma({{"hidden_size", 2560}, {"intermediate_size", 10240}, {"num_hidden_layers", 34}})},
      {"gemma-3-12b", gemma({{"hidden_size", 3840},
                             {"intermediate_size", 15360},
                             {"num_attention_heads", 16},
                             {"num_hidden_layers", 48},
                             {"num_key_value_heads", 8}})},
      {"gemma-3-27b", gemma({{"head_dim", 128},
                             {"hidden_size", 5376},
                             {"intermediate_size", 21504},
                             {"num_attention_heads", 32},
                             {"num_hidden_layers", 62},
                             {"num_key_value_heads", 16},
                             {"query_pre_attn_scalar", 168}})},
      {"mistral-7b-v0.1",
       {{"architectures", {"MistralForCausalLM"}},
        {"model_type", "mistral"},
        {"hidden_size", 4096},
        {"intermediate_size", 14336},
        {"num_attention_heads", 32},
        {"num_hidden_layers", 32},
        {"num_key_value_heads", 8},
        {"rms_norm_eps", 1e-6},
        {"rope_theta", 1e6},
        {"sliding_window", 4096},
        {"tie_word_embeddings", false},
        {"vocab_size", 32000},
        {"max_position_embeddings", 32768},
        {"hidden_act", "silu"}}},
      {"qwen3-30b-a3b", qwen3_moe({{"hidden_size", 2048},
                                   {"intermediate_size", 6144},
                                   {"moe_intermediate_size", 768},
                                   {"num_attention_heads", 32},
                                   {"num_hidden_layers", 48}})},
      {"qwen3-235b-a22b", qwen3_moe({{"hidden_size", 4096},
                                     {"intermediate_size", 12288},
                                     {"moe_intermediate_size", 1536},
                                     {"num_attention_heads", 64},
                                     {"num_hidden_layers", 94}})},
      {"mixtral-8x7b",
       {{"architectures", {"MixtralForCausalLM"}},
        {"model_type", "mixtral"},
        {"hidden_size", 4096},
        {"intermediate_size", 14336},
        {"num_attention_heads", 32},
        {"num_hidden_layers", 32},
        {"num_key_value_heads", 8},
        {"num_experts_per_tok", 2},
        {"num_local_experts", 8},
        {"rms_norm_eps", 1e-6},
        {"rope_theta", 1e6},
        {"sliding_window", nullptr},
        {"tie_word_embeddings", false},
        {"vocab_size", 32000},
        {"max_position_embeddings", 32768},
        {"hidden_act", "silu"}}},
      {"olmoe-1b-7b",
       {{"architectures", {"OlmoeForCausalLM"}},
        {"model_type", "olmoe"},
        {"hidden_size", 2048},
        {"intermediate_size", 1024},
        {"norm_topk_prob", false},
        {"num_attention_heads", 16},
        {"num_experts", 64},
        {"num_experts_per_tok", 8},
        {"num_hidden_layers", 16},
        {"num_key_value_heads", 16},
        {"rms_norm_eps", 1e-6},
        {"rope_theta", 1e6},
        {"tie_word_embeddings", false},
        {"vocab_size", 50304},
        {"max_position_embeddings", 4096},
        {"hidden_act", "silu"}}},
      {"gpt-oss-20b", gpt_oss(24, 32)},
      {"gpt-oss-120b", gpt_oss(36, 128)}};
  for (const auto& [name, file] : all) {
    const ModelConfig wanted = read(file), shape = shape_by_name(name);
    check_config(shape, name);
    for (const auto field :
         {&ModelConfig::hidden, &ModelConfig::ffn, &ModelConfig::heads, &ModelConfig::kv_heads,
          &ModelConfig::head_dim, &ModelConfig::vocab, &ModelConfig::context, &ModelConfig::rotary_dim})
      EXPECT_EQ(shape.*field, wanted.*field) << name;
    EXPECT_EQ(shape.family, wanted.family) << name;
    EXPECT_EQ(shape.qk_norm, wanted.qk_norm) << name;
    EXPECT_EQ(shape.norms, wanted.norms) << name;
    EXPECT_EQ(shape.activation, wanted.activation) << name;
    EXPECT_EQ(shape.tied_output, wanted.tied_output) << name;
    EXPECT_EQ(shape.sinks, wanted.sinks) << name;
    EXPECT_EQ(shape.biases.o, wanted.biases.o) << name;
    EXPECT_EQ(shape.experts.biases, wanted.experts.biases) << name;
    EXPECT_EQ(shape.experts.logit_bias, wanted.experts.logit_bias) << name;
    for (const auto field : {&Experts::count, &Experts::per_token, &Experts::ffn, &Experts::shared_ffn})
      EXPECT_EQ(shape.experts.*field, wanted.experts.*field) << name;
    EXPECT_EQ(shape.experts.normalized, wanted.experts.normalized) << name;
    EXPECT_FLOAT_EQ(shape.norm_eps, wanted.norm_eps) << name;
    EXPECT_FLOAT_EQ(shape.embedding_scale, wanted.embedding_scale) << name;
    EXPECT_FLOAT_EQ(shape.score_factor(), wanted.score_factor()) << name;
    ASSERT_EQ(shape.ropes.size(), wanted.ropes.size()) << name;
    ASSERT_EQ(shape.layer_count(), wanted.layer_count()) << name;
    for (size_t i = 0; i < shape.layers.size(); ++i) {
      EXPECT_EQ(shape.layers[i].window, wanted.layers[i].window) << name << " " << i;
      EXPECT_EQ(shape.layers[i].experts, wanted.layers[i].experts) << name << " " << i;
      EXPECT_EQ(shape.ropes[static_cast<size_t>(shape.layers[i].rope)].freqs,
                wanted.ropes[static_cast<size_t>(wanted.layers[i].rope)].freqs)
          << name << " " << i;
    }
  }
}

}  // namespace
}  // namespace sheaf
