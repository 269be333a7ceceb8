#include <cmath>
#include <gtest/gtest.h>

#include "io/model/model_config.h"
#include "tests/errors.h"
#include "tests/files.h"
#include "tests/model/gguf_bytes.h"
#include "tests/model/golden.h"

namespace sheaf {
namespace {

/// The metadata of a small model and its embedding; enough for its description.
class GgufConfig : public testing::Test {
 protected:
  GgufConfig() { start("qwen2"); }

  void start(const std::string& arch) {
    made_ = {};
    arch_ = arch;
    made_.text("general.architecture", arch);
    for (const auto& [key, value] : {std::pair{"block_count", 2U},
                                     {"embedding_length", 32U},
                                     {"feed_forward_length", 64U},
                                     {"attention.head_count", 4U},
                                     {"attention.head_count_kv", 2U},
                                     {"context_length", 1000U}}) {
      u32(key, value);
    }
    f32("attention.layer_norm_rms_epsilon", 1e-5f);
    made_.tensor("token_embd.weight", {32, 10}, 1, 0);
    made_.data.resize(640);
  }
  void u32(const std::string& key, uint32_t value) { made_.u32(arch_ + "." + key, value); }
  void f32(const std::string& key, float value) { made_.f32(arch_ + "." + key, value); }
  void text(const std::string& key, const std::string& value) { made_.text(arch_ + "." + key, value); }
  ModelConfig read() {
    return read_gguf_config(GgufFile::open(folder_.write("model.gguf", made_.bytes()))).config;
  }
  void refused(const std::vector<std::string>& parts) {
    expect_refusal([&] { read(); }, parts);
    start("qwen2");
  }

  GgufBytes made_;
  std::string arch_;
  TempFolder folder_;
};

TEST_F(GgufConfig, ReadsSizesAndDefaults) {
  f32("rope.freq_base", 100.0f);
  const ModelConfig config = read();
  EXPECT_EQ(config.family, "qwen2");
  EXPECT_EQ(config.layer_count(), 2);
  EXPECT_EQ(config.head_dim, 8);
  EXPECT_EQ(config.rotary_dim, 8);
  EXPECT_EQ(config.vocab, 10);
  EXPECT_TRUE(config.tied_output);
  EXPECT_NEAR(config.ropes.at(0).freqs[2], 0.1f, 1e-6f);
}

TEST_F(GgufConfig, ScalesRope) {
  const ModelConfig plain = read();
  start("qwen2");
  text("rope.scaling.type", "linear");
  f32("rope.scaling.factor", 4.0f);
  EXPECT_FLOAT_EQ(read().ropes.at(0).freqs[3], plain.ropes.at(0).freqs[3] / 4);
  start("qwen2");
  text("rope.scaling.type", "yarn");
  f32("rope.scaling.factor", 4.0f);
  u32("rope.scaling.original_context_length", 250);
  const ModelConfig yarn = read();
  EXPECT_FLOAT_EQ(yarn.ropes.at(0).freqs[0], plain.ropes.at(0).freqs[0]);
  EXPECT_FLOAT_EQ(yarn.ropes.at(0).freqs[3], plain.ropes.at(0).freqs[3] / 4);
  EXPECT_NEAR(yarn.ropes.at(0).scale, 0.1 * std::log(4) + 1, 1e-6);
}

TEST_F(GgufConfig, WindowsBelongToLayers) {
  u32("attention.sliding_window", 300);
  EXPECT_EQ(read().context, 1000);
  for (const LayerConfig& layer : read().layers) EXPECT_EQ(layer.window, 300);
  u32("attention.sliding_window_pattern", 2);
  EXPECT_EQ(read().layers[0].window, 300);
  EXPECT_EQ(read().layers[1].window, 0);
  start("granite");
  u32("attention.sliding_window", 300);
  refused({"granite.attention.sliding_window is 300"});
  start("qwen2");
  u32("attention.sliding_window", 1000);
  EXPECT_EQ(read().layers[0].window, 0) << "nothing lies outside";
}

TEST_F(GgufConfig, UnsupportedModelsAreRefusedByName) {
  made_.u32("split.count", 3);
  refused({"one of 3 parts"});
  u32("expert_count", 8);
  refused({"qwen2.expert_count is 8"});
  f32("final_logit_softcapping", 30);
  refused({"qwen2.final_logit_softcapping"});
  text("rope.scaling.type", "longrope");
  refused({"rope scaling \"longrope\""});
  f32("rope.scaling.yarn_log_multiplier", 0.1f);
  refused({"qwen2.rope.scaling.yarn_log_multiplier"});
  u32("attention.value_length", 16);
  refused({"keys have 8 dimensions, but values 16"});
  start("llama");
  u32("rope.dimension_count", 6);
  refused({"6 of 8 dimensions are rotary"});
  made_.tensors.clear();
  refused({"no tensor token_embd.weight", "only a vocabulary"});
  made_.tensor("rope_freqs.weight", {3}, 0, 640);
  made_.data.resize(672);
  refused({"rope_freqs.weight", "[4]"});
  made_.tensor("rope_freqs.weight", {4}, 0, 640);
  made_.data.resize(672);
  refused({"rope_freqs.weight contains 0"});
  made_.values.erase(made_.values.begin() + 1);
  refused({"\"qwen2.block_count\" is missing"});
}

}  // namespace
}  // namespace sheaf
