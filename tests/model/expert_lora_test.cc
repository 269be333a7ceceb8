// Adapters on mixtures of experts, against W + scale · B A written out.
#include <gtest/gtest.h>

#include "core/base/error.h"
#include "cpu/cpu_backend.h"
#include "io/model/model_files.h"
#include "tests/errors.h"
#include "tests/model/expert_checkpoint.h"
#include "tests/model/golden.h"

namespace sheaf {
namespace {

using nlohmann::json;
using test::ExpertCheckpoint;

constexpr int64_t kRank = 2, kHidden = ExpertCheckpoint::kHidden, kFfn = ExpertCheckpoint::kFfn;
constexpr float kScale = 4;  // lora_alpha 8 / rank 2

/// An adapter in PEFT's format.
class AdapterFolder {
 public:
  void add(const std::string& module, int64_t rows, int64_t cols) {
    const std::vector<float> a = draw(kRank * cols), b = draw(rows * kRank);
    tensors_.add("base_model.model." + module + ".lora_A.weight", {kRank, cols}, a);
    tensors_.add("base_model.model." + module + ".lora_B.weight", {rows, kRank}, b);
    std::vector<float>& delta = deltas[module];
    for (int64_t row = 0; row < rows; ++row)
      for (int64_t col = 0; col < cols; ++col) {
        float sum = 0;
        for (int64_t r = 0; r < kRank; ++r)
          sum += b[static_cast<size_t>(row * kRank + r)] * a[static_cast<size_t>(r * cols + col)];
        delta.push_back(kScale * sum);
      }
  }
  std::string write(const json& changes = json::object()) const {
    json config{{"peft_type", "LORA"}, {"r", kRank}, {"lora_alpha", 8}, {"bias", "none"}};
    config.update(changes);
    folder_.write("adapter_config.json", config.dump());
    folder_.write("adapter_model.safetensors", tensors_.bytes());
    return folder_.path();
  }

  std::map<std::string, std::vector<float>> deltas;

 private:
  std::vector<float> draw(int64_t count) {
    std::normal_distribution<float> normal(0, 0.1f);
    std::vector<float> values(static_cast<size_t>(count));
    for (float& value : values) value = normal(random_);
    return values;
  }

  TempFolder folder_;
  Tensors tensors_;
  std::mt19937 random_{3};
};

void expect_merged(const Matrix& merged, const Matrix& plain, const AdapterFolder& adapter,
                   const std::string& module) {
  SCOPED_TRACE(module);
  std::vector<float> right = plain.read_all();
  const std::vector<float>& delta = adapter.deltas.at(module);
  ASSERT_EQ(delta.size(), right.size());
  const std::vector<float> got = merged.read_all();
  for (size_t i = 0; i < right.size(); ++i) ASSERT_NEAR(got[i], right[i] + delta[i], 1e-5f) << i;
}

TEST(ExpertLora, ChangesExpertsRouterAndAttentionOfAQuantizedCheckpoint) {
  const TempFolder folder;
  ExpertCheckpoint(ExpertCheckpoint::Format::fp8).write(folder);
  AdapterFolder adapter;
  const std::string q = "model.layers.0.self_attn.q_proj", router = "model.layers.0.mlp.gate",
                    up = ExpertCheckpoint::expert(2, "up_proj"),
                    down = ExpertCheckpoint::expert(3, "down_proj");
  adapter.add(q, 2 * ExpertCheckpoint::kHead, kHidden);
  adapter.add(router, ExpertCheckpoint::kExperts, kHidden);
  adapter.add(up, kFfn, kHidden);
  adapter.add(down, kHidden, kFfn);
  const Model plain = load_model(folder.path()), merged = load_model(folder.path(), adapter.write());
  const LayerWeights &before = plain.layers[0], &after = merged.layers[0];
  expect_merged(after.q, before.q, adapter, q);
  expect_merged(after.router, before.router, adapter, router);
  expect_merged(after.experts[2].up, before.experts[2].up, adapter, up);
  expect_merged(after.experts[3].down, before.experts[3].down, adapter, down);
  EXPECT_EQ(after.experts[1].up.read_all(), before.experts[1].up.read_all());
  EXPECT_NO_THROW(make_quick_backend(merged, 1, Precision::int8));
}

TEST(ExpertLora, ChangesExpertsOfGgufFilesByTheirOtherNames) {
  const json config = read_golden_json("qwen2_moe/config.json");
  const auto hidden = config.at("hidden_size").get<int64_t>(),
             shared = config.at("shared_expert_intermediate_size").get<int64_t>(),
             ffn = config.at("moe_intermediate_size").get<int64_t>();
  AdapterFolder adapter;
  const std::string layer = "model.layers.1.mlp.";
  adapter.add(layer + "gate", 6, hidden);
  adapter.add(layer + "shared_expert_gate", 1, hidden);
  adapter.add(layer + "shared_expert.up_proj", shared, hidden);
  adapter.add(layer + "experts.5.gate_proj", ffn, hidden);
  const std::string path = adapter.write();
  for (const char* name : {"qwen2_moe", "qwen2_moe_gguf/model.gguf"}) {
    SCOPED_TRACE(name);
    const Model plain = load_model(golden(name)), merged = load_model(golden(name), path);
    const LayerWeights &before = plain.layers[1], &after = merged.layers[1];
    expect_merged(after.router, before.router, adapter, layer + "gate");
    expect_merged(after.shared_gate, before.shared_gate, adapter, layer + "shared_expert_gate");
    expect_merged(after.up, before.up, adapter, layer + "shared_expert.up_proj");
    expect_merged(after.experts[5].gate, before.experts[5].gate, adapter, layer + "experts.5.gate_proj");
  }
}

TEST(ExpertLora, RefusesWhatItCannotAdd) {
  const TempFolder folder;
  ExpertCheckpoint(ExpertCheckpoint::Format::fp8).write(folder);
  const auto refused = [&](const std::string& module, int64_t rows, int64_t cols,
                           const std::vector<std::string>& parts, const json& changes = json::object()) {
    AdapterFolder adapter;
    adapter.add(module, rows, cols);
    const std::string path = adapter.write(changes);
    expect_refusal([&] { load_model(folder.path(), path); }, parts);
  };
  refused(ExpertCheckpoint::expert(4, "up_proj"), kFfn, kHidden,
          {"model.layers.0.mlp.experts.4.up_proj", "not a linear layer of this model"});
  refused(ExpertCheckpoint::expert(1, "up_proj"), kFfn + 8, kHidden,
          {"experts.1.up_proj", "[200, 256]", "the model's has [192, 256]"});
  refused(ExpertCheckpoint::expert(1, "up_proj"), kFfn, kHidden,
          {"adapter_config.json", "target_parameters", "several experts in one", "target_modules"},
          {{"target_parameters", {"mlp.experts.gate_up_proj"}}});
}

}  // namespace
}  // namespace sheaf
