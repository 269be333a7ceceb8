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

/// An adapter on all experts in one tensor, and what it adds to expert `expert` of [rows, cols], as PEFT
/// defines it: Σ over r of A[expert · rank + r][in] · B[out][r · experts + expert].
class StackedAdapter {
 public:
  static constexpr int64_t kExperts = ExpertCheckpoint::kExperts;

  void add(const std::string& module, int64_t in, int64_t out) {
    in_ = in;
    a_ = draw(kRank * kExperts * in);
    b_ = draw(out * kRank * kExperts);
    tensors.add("base_model.model." + module + ".lora_A.weight", {kRank * kExperts, in}, a_);
    tensors.add("base_model.model." + module + ".lora_B.weight", {out, kRank * kExperts}, b_);
  }
  float delta(int64_t expert, int64_t in, int64_t out) const {
    float sum = 0;
    for (int64_t r = 0; r < kRank; ++r)
      sum += a_[static_cast<size_t>((expert * kRank + r) * in_ + in)] *
             b_[static_cast<size_t>(out * kRank * kExperts + r * kExperts + expert)];
    return kScale * sum;
  }
  std::string write() const {
    const json config{{"peft_type", "LORA"},
                      {"r", kRank},
                      {"lora_alpha", 8},
                      {"target_parameters", {"mlp.experts.gate_up_proj", "mlp.experts.down_proj"}}};
    folder_.write("adapter_config.json", config.dump());
    folder_.write("adapter_model.safetensors", tensors.bytes());
    return folder_.path();
  }

  Tensors tensors;

 private:
  std::vector<float> draw(int64_t count) {
    std::normal_distribution<float> normal(0, 0.1f);
    std::vector<float> values(static_cast<size_t>(count));
    for (float& value : values) value = normal(random_);
    return values;
  }

  std::vector<float> a_, b_;
  int64_t in_ = 0;
  TempFolder folder_;
  std::mt19937 random_{4};
};

TEST(ExpertLora, ChangesExpertsThatPeftHoldsInOneTensorEitherWayRound) {
  const TempFolder folder;
  ExpertCheckpoint(ExpertCheckpoint::Format::gptq).write(folder);
  const Model plain = load_model(folder.path());
  const std::string module = "model.layers.0.mlp.experts";
  for (const bool turned : {false, true}) {
    SCOPED_TRACE(turned);
    // The rows of gate lie above those of up.
    StackedAdapter gate_up, down;
    gate_up.add(module, turned ? 2 * kFfn : kHidden, turned ? kHidden : 2 * kFfn);
    down.add(module + ".base_layer", turned ? kHidden : kFfn, turned ? kFfn : kHidden);
    const auto expect_added = [&](const Matrix& merged, const Matrix& before, const StackedAdapter& adapter,
                                  int64_t expert, int64_t first) {
      std::vector<float> right = before.read_all();
      const std::vector<float> got = merged.read_all();
      for (int64_t row = 0; row < before.rows; ++row)
        for (int64_t col = 0; col < before.cols; ++col) {
          const float delta =
              turned ? adapter.delta(expert, first + row, col) : adapter.delta(expert, col, first + row);
          const auto i = static_cast<size_t>(row * before.cols + col);
          ASSERT_NEAR(got[i], right[i] + delta, 1e-5f) << expert << " " << row << " " << col;
        }
    };
    for (const StackedAdapter* each : {&gate_up, &down}) {
      const Model merged = load_model(folder.path(), each->write());
      for (int64_t i = 0; i < ExpertCheckpoint::kExperts; ++i) {
        const auto at = static_cast<size_t>(i);
        const ExpertWeights &before = plain.layers[0].experts[at], &after = merged.layers[0].experts[at];
        if (each == &gate_up) {
          expect_added(after.gate, before.gate, gate_up, i, 0);
          expect_added(after.up, before.up, gate_up, i, kFfn);
          EXPECT_EQ(after.down.read_all(), before.down.read_all());
        } else {
          expect_added(after.down, before.down, down, i, 0);
          EXPECT_EQ(after.up.read_all(), before.up.read_all());
        }
      }
    }
  }
}

TEST(ExpertLora, RefusesStackedOnesThatDoNotFit) {
  const TempFolder folder;
  ExpertCheckpoint(ExpertCheckpoint::Format::gptq).write(folder);
  StackedAdapter wide;
  wide.add("model.layers.0.mlp.experts", kHidden, 3 * kFfn);
  expect_refusal(
      [&] { load_model(folder.path(), wide.write()); },
      {"model.layers.0.mlp.experts", "[576, 256]", "gate and up of [384, 256] and down of [256, 192]"});
  StackedAdapter few;
  few.add("model.layers.0.mlp.experts", kHidden, 2 * kFfn);
  few.tensors.add("base_model.model.model.layers.0.mlp.experts.lora_A.weight", {6, kHidden},
                  std::vector<float>(6 * kHidden));
  few.tensors.add("base_model.model.model.layers.0.mlp.experts.lora_B.weight", {2 * kFfn, 6},
                  std::vector<float>(static_cast<size_t>(2 * kFfn * 6)));
  expect_refusal([&] { load_model(folder.path(), few.write()); },
                 {"6 rows in lora_A", "4 experts of rank 2 need 8"});
  StackedAdapter other;
  other.add("model.layers.0.mlp.experts", 32, 40);
  expect_refusal([&] { load_model(golden("qwen3_moe"), other.write()); },
                 {"mlp.experts", "6 experts of rank 2"});
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
          {"adapter_config.json", "target_parameters", "mlp.gate.weight", "supported: experts.gate_up_proj"},
          {{"target_parameters", {"mlp.gate.weight"}}});
}

}  // namespace
}  // namespace sheaf
