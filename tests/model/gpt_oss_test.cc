// Files of gpt-oss: experts with gates and ups in turns, in 16 bits and in MXFP4, and damaged ones.
#include <algorithm>
#include <bit>
#include <climits>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <gtest/gtest.h>
#include <limits>
#include <random>

#include "core/model/e4m3.h"
#include "cpu/cpu_backend.h"
#include "io/model/model_files.h"
#include "io/model/safetensors.h"
#include "tests/errors.h"
#include "tests/files.h"
#include "tests/model/golden.h"
#include "tests/model/safetensors_bytes.h"

namespace sheaf {
namespace {

struct StoredTensor {
  std::string type;
  std::vector<int64_t> shape;
  std::string bytes;
};

class GptOssFiles : public testing::Test {
 protected:
  explicit GptOssFiles(std::string name = "gpt_oss_mxfp4") : name_(std::move(name)) {
    config_ = read_golden_json(name_ + "/config.json");
    const SafetensorsFile file = SafetensorsFile::open(golden(name_ + "/model.safetensors"));
    for (const auto& [key, tensor] : file.tensors())
      tensors_[key] = {
          tensor.type, tensor.shape,
          std::string(reinterpret_cast<const char*>(tensor.data), static_cast<size_t>(tensor.size))};
  }

  Model load() {
    Tensors all;
    for (const auto& [key, tensor] : tensors_) all.add(key, tensor.type.c_str(), tensor.shape, tensor.bytes);
    folder_.write("config.json", config_.dump());
    folder_.write("model.safetensors", all.bytes());
    return load_model(folder_.path());
  }
  void refused(const std::vector<std::string>& parts) {
    expect_refusal([&] { make_reference_backend(load()); }, parts);
  }
  StoredTensor& tensor(const std::string& name) { return tensors_.at(kLayer + name); }

  static constexpr const char* kLayer = "model.layers.1.";
  static constexpr const char* kBlocks = "mlp.experts.gate_up_proj_blocks";
  static constexpr const char* kScales = "mlp.experts.gate_up_proj_scales";
  std::string name_;
  nlohmann::json config_;
  std::map<std::string, StoredTensor> tensors_;
  TempFolder folder_;
};

TEST_F(GptOssFiles, ExpertsAreWhatTheGgufFileHolds) {
  const Model model = load(), gguf = load_model(golden("gpt_oss_mxfp4_gguf/model.gguf"));
  for (size_t i = 0; i < model.layers.size(); ++i) {
    const LayerWeights &one = model.layers[i], &other = gguf.layers[i];
    ASSERT_EQ(one.experts.size(), other.experts.size());
    EXPECT_EQ(one.sinks.read_all(), other.sinks.read_all());
    for (size_t e = 0; e < one.experts.size(); ++e)
      for (const auto matrix :
           {&ExpertWeights::gate, &ExpertWeights::up, &ExpertWeights::down, &ExpertWeights::gate_bias,
            &ExpertWeights::up_bias, &ExpertWeights::down_bias}) {
        const Matrix &a = one.experts[e].*matrix, &b = other.experts[e].*matrix;
        EXPECT_EQ(a.read_all(), b.read_all()) << a.name;
        a.page_in(0, a.rows);
      }
    EXPECT_EQ(one.experts[0].gate.dtype, DType::mxfp4);
  }
}

TEST_F(GptOssFiles, Mxfp4BecomesBf16WithoutLoss) {
  const Model model = load();
  for (const LayerWeights& layer : model.layers)
    for (const ExpertWeights& expert : layer.experts) {
      const std::vector<float> values = expert.down.read_all();
      std::vector<uint16_t> bits(values.size());
      expert.down.read_bf16(0, expert.down.rows, bits.data());
      for (size_t i = 0; i < bits.size(); ++i)
        ASSERT_EQ(std::bit_cast<float>(uint32_t{bits[i]} << 16), values[i]);
    }
}

TEST(Mxfp4, EveryScaleAndCodeBecomesBf16WithoutLoss) {
  std::byte block[17];
  for (int i = 0; i < 16; ++i) block[1 + i] = static_cast<std::byte>(i | (15 - i) << 4);
  constexpr float kValues[] = {0, 0.5f, 1, 1.5f, 2, 3, 4, 6};
  for (int scale = 0; scale < 256; ++scale) {
    block[0] = static_cast<std::byte>(scale);
    float values[32];
    uint16_t bits[32];
    to_f32(DType::mxfp4, block, 32, values);
    to_bf16(DType::mxfp4, block, 32, bits);
    EXPECT_TRUE(scale > 252 || surely_finite(DType::mxfp4, block, 32)) << scale;
    EXPECT_TRUE(scale <= 252 || !surely_finite(DType::mxfp4, block, 32)) << scale;
    for (int i = 0; i < 32; ++i) {
      const int code = i < 16 ? i : 31 - i;
      const float expected = std::ldexp(code < 8 ? kValues[code] : -kValues[code - 8], scale - 127);
      if (scale == 255) {
        EXPECT_TRUE(std::isnan(values[i]));
        continue;
      }
      EXPECT_EQ(values[i], expected) << scale << ", " << code;
      if (!std::isfinite(expected)) continue;
      EXPECT_EQ(std::bit_cast<float>(uint32_t{bits[i]} << 16), expected) << scale << ", " << code;
    }
  }
}

/// A row of MXFP4 as the file would have it.
struct Mxfp4Row {
  std::vector<std::byte> blocks;
  std::vector<float> values;

  explicit Mxfp4Row(std::vector<std::byte> all) : blocks(std::move(all)), values(blocks.size() / 17 * 32) {
    to_f32(DType::mxfp4, blocks.data(), std::ssize(values), values.data());
  }
  /// Whether E4M3 has the bits for all values: its least number is 256 / 2^17, which the row's largest
  /// power of two becomes. A value of two digits, 1.5 times a power of two, ends half of it lower.
  bool fits() const {
    int highest = INT_MIN, lowest = INT_MAX;
    for (const float value : values) {
      if (value == 0) continue;
      int exponent = 0;
      const float digits = std::abs(std::frexp(value, &exponent));
      highest = std::max(highest, exponent);
      lowest = std::min(lowest, digits == 0.5f ? exponent : exponent - 1);
    }
    return lowest >= highest - 17;
  }
  /// Whether it comes back from E4M3 as it was.
  bool comes_back() const {
    Matrix row;
    row.dtype = DType::mxfp4;
    row.rows = 1;
    row.cols = std::ssize(values);
    row.data = blocks.data();
    std::vector<uint8_t> narrow(values.size());
    float scale = 0;
    row.read_e4m3(0, 1, narrow.data(), &scale);
    for (size_t i = 0; i < values.size(); ++i)
      if (from_e4m3(narrow[i]) * scale != values[i]) return false;
    return true;
  }
};

TEST(Mxfp4, RowsAreExactInE4m3WhereTheirScalesLieClose) {
  // By hand: 6 beside 0.5, 1 and 1.5 of a scale that is so many powers smaller.
  const auto row_of = [](uint8_t code, int apart) {
    std::vector<std::byte> blocks(34);
    blocks[0] = std::byte{130};
    blocks[1] = std::byte{7};
    blocks[17] = static_cast<std::byte>(130 - apart);
    blocks[20] = static_cast<std::byte>(code << 4);
    return Mxfp4Row(std::move(blocks));
  };
  for (const auto& [code, most] : {std::pair<uint8_t, int>{1, 14}, {2, 15}, {3, 14}, {4, 16}, {9, 14}}) {
    EXPECT_TRUE(row_of(code, most).comes_back()) << int{code};
    EXPECT_FALSE(row_of(code, most + 1).comes_back()) << int{code};
  }
  std::mt19937 random(3);
  int exact = 0;
  constexpr int kRows = 4000;
  for (int i = 0; i < kRows; ++i) {
    const auto first = 80 + random() % 100, spread = 1 + random() % 20;
    std::vector<std::byte> blocks(17 * (1 + random() % 6));
    for (size_t at = 0; at < blocks.size(); ++at)
      blocks[at] = static_cast<std::byte>(at % 17 == 0        ? first + random() % spread
                                          : random() % 3 == 0 ? random() % 256
                                                              : 0);
    const Mxfp4Row row(std::move(blocks));
    EXPECT_EQ(row.comes_back(), row.fits()) << "row " << i;
    exact += row.fits() ? 1 : 0;
  }
  EXPECT_GT(exact, kRows / 4);
  EXPECT_LT(exact, kRows);
  EXPECT_TRUE(Mxfp4Row(std::vector<std::byte>(17)).comes_back());
}

TEST_F(GptOssFiles, SinksOfAnotherNumberAreRefused) {
  StoredTensor& sinks = tensor("self_attn.sinks");
  sinks = {sinks.type, {3}, sinks.bytes.substr(0, 6)};
  refused({"model.safetensors", "model.layers.1.self_attn.sinks", "[3]", "[4]"});
  tensors_.erase(kLayer + std::string("self_attn.sinks"));
  refused({"model.safetensors", "model.layers.1.self_attn.sinks is missing"});
}

TEST_F(GptOssFiles, ASinkThatIsNotANumberIsRefused) {
  for (const char* bits : {"\xc0\x7f", "\x80\x7f"}) {
    tensor("self_attn.sinks").bytes.replace(2, 2, bits, 2);
    refused({"model.safetensors", "model.layers.1.self_attn.sinks", "holds"});
    expect_refusal([&] { make_quick_backend(load(), 1); }, {"self_attn.sinks"});
  }
}

TEST_F(GptOssFiles, ScalesThatAreMissingOrOfAnotherShapeAreRefused) {
  const StoredTensor scales = tensor(kScales);
  tensor(kScales).shape.back() = 1;
  tensor(kScales).bytes.resize(scales.bytes.size() / 2);
  refused({"gate_up_proj_scales", "[6, 128, 1]", "[6, 128, 2]"});
  tensor(kScales) = scales;
  tensor(kScales).type = "I8";
  refused({"gate_up_proj_scales", "I8", "U8"});
  tensors_.erase(std::string(kLayer) + kScales);
  refused({"model.safetensors", "model.layers.1.mlp.experts.gate_up_proj_scales is missing"});
}

TEST_F(GptOssFiles, BlocksThatAreMissingOrOfAnotherShapeAreRefused) {
  const StoredTensor blocks = tensor(kBlocks);
  std::swap(tensor(kBlocks).shape[0], tensor(kBlocks).shape[1]);
  refused({"gate_up_proj_blocks", "[128, 6, 2, 16]", "[6, 128, 2, 16]"});
  tensors_.erase(std::string(kLayer) + kBlocks);
  refused({"gate_up_proj_blocks is missing"});
  tensors_[std::string(kLayer) + kBlocks] = blocks;
  tensors_[std::string(kLayer) + "mlp.experts.gate_up_proj"] = {"F32", {1}, std::string(4, '\0')};
  refused({"gate_up_proj", "does not belong"});
}

TEST_F(GptOssFiles, AScaleThatIsNotANumberIsRefused) {
  tensor(kScales).bytes[3] = '\xff';
  refused({"model.safetensors", "model.layers.1.mlp.experts.gate_up_proj:0:up", "holds NaN"});
  tensor(kScales).bytes[3] = '\xfe';
  tensor(kBlocks).bytes.replace(16 * 3, 16, std::string(16, '\x77'));
  refused({"model.layers.1.mlp.experts.gate_up_proj:0:up", "holds an infinity"});
}

TEST_F(GptOssFiles, BiasesOfAnotherShapeAreRefused) {
  StoredTensor& bias = tensor("mlp.experts.down_proj_bias");
  std::swap(bias.shape[0], bias.shape[1]);
  refused({"down_proj_bias", "[64, 6]", "[6, 64]"});
  std::swap(bias.shape[0], bias.shape[1]);
  tensors_.erase(kLayer + std::string("mlp.router.bias"));
  refused({"model.layers.1.mlp.router.bias is missing"});
}

TEST_F(GptOssFiles, OtherArithmeticIsRefused) {
  const nlohmann::json good = config_;
  config_["swiglu_limit"] = 6;
  refused({"config.json", "swiglu_limit", "6", "7"});
  config_ = good;
  config_["hidden_act"] = "gelu";
  refused({"config.json", "gelu"});
  config_ = good;
  config_.erase("rope_parameters");
  refused({"config.json", "rope_scaling"});
  config_ = good;
  config_["attention_bias"] = false;
  refused({"self_attn.k_proj.bias", "does not belong"});
  config_ = good;
  config_["num_experts_per_tok"] = 7;
  refused({"7 experts", "only 6"});
  config_ = good;
  config_["swiglu_limit"] = 7.0;
  EXPECT_NO_THROW(load());
}

TEST_F(GptOssFiles, InputsThatAreNoWholeBlocksAreRefused) {
  // The plain golden has experts of 40.
  StoredTensor& blocks = tensor("mlp.experts.down_proj_blocks");
  config_["intermediate_size"] = 40;
  blocks.shape = {6, 64, 1, 16};
  blocks.bytes.resize(blocks.bytes.size() / 2);
  const std::string first = "model.layers.0.mlp.experts.gate_up_proj_bias";
  refused({first, "[6, 128]", "[6, 80]"});
}

class PlainGptOssFiles : public GptOssFiles {
 protected:
  PlainGptOssFiles() : GptOssFiles("gpt_oss") {}
};

TEST_F(PlainGptOssFiles, ExpertsOfAnotherShapeAreRefused) {
  StoredTensor& experts = tensor("mlp.experts.gate_up_proj");
  EXPECT_EQ(experts.shape, (std::vector<int64_t>{6, 32, 80}));
  std::swap(experts.shape[1], experts.shape[2]);  // outputs first, as other families have them
  refused({"gate_up_proj", "[6, 80, 32]", "[6, 32, 80]"});
}

TEST_F(PlainGptOssFiles, AWeightThatIsNotANumberIsRefused) {
  tensor("mlp.experts.down_proj").bytes.replace(0, 2, "\xc0\x7f", 2);
  refused({"model.safetensors", "model.layers.1.mlp.experts.down_proj:0:down", "holds NaN"});
}

TEST_F(PlainGptOssFiles, AdaptersOnExpertsAreRefused) {
  load();
  const TempFolder adapter;
  Tensors tensors;
  const std::string module = "base_model.model.model.layers.0.mlp.experts.";
  tensors.add(module + "lora_A.weight", {12, 40}, std::vector<float>(12 * 40, 0.5f));
  tensors.add(module + "lora_B.weight", {32, 12}, std::vector<float>(32 * 12, 0.25f));
  adapter.write("adapter_config.json",
                R"({"peft_type":"LORA","r":2,"lora_alpha":4,"target_parameters":["mlp.experts.down_proj"]})");
  adapter.write("adapter_model.safetensors", tensors.bytes());
  expect_refusal([&] { load_model(folder_.path(), adapter.path()); }, {"mlp.experts"});
}

}  // namespace
}  // namespace sheaf
