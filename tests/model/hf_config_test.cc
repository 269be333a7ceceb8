#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

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

TEST_F(HfConfig, WindowsCapTheContext) {
  EXPECT_EQ(read(with("mistral", json::object())).context, 128);
  EXPECT_EQ(read(with("mistral", {{"sliding_window", nullptr}})).context, 256);
  json config = with("mistral", {{"max_position_embeddings", 32768}});
  config.erase("sliding_window");
  EXPECT_EQ(read(config).context, 4096) << "Mistral's own default";
  EXPECT_EQ(read(with("qwen2", {{"sliding_window", 64}})).context, 256) << "switched off";
  EXPECT_EQ(read(with("qwen2", {{"sliding_window", 64}, {"use_sliding_window", true}})).context, 64);
  EXPECT_EQ(read(with("phi3", {{"sliding_window", 100}})).context, 100);
  EXPECT_EQ(read(with("qwen2_yarn", {{"max_position_embeddings", 64}})).context, 256)
      << "yarn reaches 4 x 64";
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
  refused(with("llama", {{"model_type", "mixtral"}}), {"\"mixtral\" is not supported", "llama, qwen2"});
  refused(with("llama", {{"architectures", {"LlamaForSequenceClassification"}}}),
          {"LlamaForSequenceClassification", "LlamaForCausalLM"});
  refused(with("llama", {{"hidden_act", "gelu"}}), {"activation \"gelu\""});
  refused(with("llama", {{"attention_bias", true}}), {"attention_bias"});
  refused(with("llama", {{"mlp_bias", true}}), {"mlp_bias"});
  refused(with("qwen3", {{"num_experts", 8}}), {"num_experts"});
  refused(with("llama", {{"quantization_config", {{"quant_method", "hqq"}}}}),
          {"quantization_config", "hqq"});
  refused(with("llama", {{"final_logit_softcapping", 30.0}}), {"final_logit_softcapping"});
  refused(with("qwen2", {{"layer_types", {"linear_attention"}}}), {"linear_attention"});
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

}  // namespace
}  // namespace sheaf
