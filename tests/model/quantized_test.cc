// Weights in fewer bits, as checkpoints store them, against what the reference implementations read
// (tools/make_quantized_goldens.py).
#include <cmath>
#include <gtest/gtest.h>

#include "core/model/e4m3.h"
#include "io/model/model_files.h"
#include "io/model/quantization.h"
#include "io/model/safetensors.h"
#include "tests/errors.h"
#include "tests/files.h"
#include "tests/model/golden.h"
#include "tests/model/safetensors_bytes.h"

namespace sheaf {
namespace {

class Quantized : public testing::Test {
 protected:
  Quantization quantization(const std::string& name) const {
    const nlohmann::json config{{"quantization_config", about_.at("configs").at(name)}};
    return read_quantization(JsonFields(config, "config.json"), "config.json").value();
  }
  Matrix take(const std::string& name, const Quantization& how) {
    return take_quantized(model_.tensors, how, name, rows_, cols_).value();
  }
  Matrix take(const std::string& name) { return take(name, quantization(name)); }

  const nlohmann::json about_ = read_golden_json("quantized/configs.json");
  const int64_t rows_ = about_.at("rows"), cols_ = about_.at("cols");
  SafetensorsModel model_ = open_safetensors_model(golden("quantized/layers.safetensors"));
};

TEST_F(Quantized, EveryLayerIsWhatTheReferenceReads) {
  const std::map<std::string, std::pair<DType, float>> wanted{
      {"fp8_tensor", {DType::e4m3_128, 0.0f}},
      {"fp8_channel", {DType::e4m3_128, 0.0f}},
      {"fp8_block", {DType::e4m3_128, 0.0f}},
      {"awq", {DType::int4_128, 0.0f}},
      {"gptq", {DType::int4_128, 0.0f}},
      {"gptq_v2", {DType::int4_128, 0.0f}},
      {"gptq_sorted", {DType::f32, 0.0f}},
      {"int4", {DType::int4_32, 0.0f}},
      {"int4_zero", {DType::int4_32, 0.0f}},
      {"nf4_plain", {DType::nf4, 0.0f}},
      // Scales are the sum of two products, which need not round alike.
      {"nf4", {DType::nf4, 1e-6f}}};
  ASSERT_EQ(about_.at("configs").size(), wanted.size());
  for (const auto& [name, right] : wanted) {
    SCOPED_TRACE(name);
    const Matrix matrix = take(name);
    EXPECT_EQ(matrix.dtype, right.first);
    const std::vector<float> expected = model_.tensors.take(name + ".expected", {rows_, cols_}).read_all();
    const std::vector<float> got = matrix.read_all();
    for (size_t i = 0; i < got.size(); ++i)
      ASSERT_NEAR(got[i], expected[i], right.second * std::fabs(expected[i])) << i;
    // Row by row, as bf16, and a part of it: the same.
    std::vector<float> row(static_cast<size_t>(cols_));
    std::vector<uint16_t> halves(got.size()), rounded(got.size());
    for (int64_t r = 0; r < rows_; ++r) {
      matrix.read(r, 1, row.data());
      EXPECT_TRUE(std::equal(row.begin(), row.end(), got.begin() + r * cols_)) << r;
    }
    matrix.read_bf16(0, rows_, halves.data());
    to_bf16(DType::f32, reinterpret_cast<const std::byte*>(got.data()), rows_ * cols_, rounded.data());
    EXPECT_EQ(halves, rounded);
    const std::vector<float> part = matrix.slice(8, 8, "part").read_all();
    EXPECT_TRUE(std::equal(part.begin(), part.end(), got.begin() + 8 * cols_));
    matrix.page_in(3, 5);
  }
  for (const auto& [name, tensor] : model_.tensors.all())
    if (name.ends_with("input_scale") || name.ends_with("weight_shape")) model_.tensors.ignore(name);
  model_.tensors.refuse_unused();
}

TEST_F(Quantized, RowsOfE4m3WithOneScaleStayAsTheyAre) {
  for (const char* name : {"fp8_tensor", "fp8_channel", "fp8_block"}) {
    SCOPED_TRACE(name);
    const Matrix matrix = take(name);
    std::vector<uint8_t> bytes(static_cast<size_t>(rows_ * cols_));
    std::vector<float> scales(static_cast<size_t>(rows_));
    matrix.read_e4m3(0, rows_, bytes.data(), scales.data());
    const std::vector<float> right = matrix.read_all();
    const auto& stored = model_.tensors.all().at(std::string(name) + ".weight");
    const bool exact = std::string_view(name) != "fp8_block";
    EXPECT_EQ(std::memcmp(bytes.data(), stored.data, bytes.size()) == 0, exact);
    for (int64_t row = 0; row < rows_; ++row) {
      float largest = 0;
      for (int64_t col = 0; col < cols_; ++col)
        largest = std::max(largest, std::fabs(right[static_cast<size_t>(row * cols_ + col)]));
      for (int64_t col = 0; col < cols_; ++col) {
        const auto i = static_cast<size_t>(row * cols_ + col);
        const float got = scales[static_cast<size_t>(row)] * from_e4m3(bytes[i]);
        // Two blocks with one scale: half a step of three bits, or of the smallest values.
        const float room = exact ? 0 : std::max(std::fabs(right[i]) / 16, largest / 448 / 1024);
        EXPECT_NEAR(got, right[i], room * 1.001f);
      }
    }
  }
}

TEST_F(Quantized, APlainLayerIsNotTakenForAQuantizedOne) {
  EXPECT_FALSE(take_quantized(model_.tensors, quantization("gptq"), "nf4", rows_, cols_));
  EXPECT_FALSE(take_quantized(model_.tensors, quantization("nf4"), "gptq", rows_, cols_));
  EXPECT_FALSE(take_quantized(model_.tensors, quantization("fp8_tensor"), "awq", rows_, cols_));
}

TEST_F(Quantized, RefusesWhatDoesNotFit) {
  const auto refused = [&](const std::string& name, int64_t rows, int64_t cols,
                           const std::vector<std::string>& parts) {
    expect_refusal([&] { take_quantized(model_.tensors, quantization(name), name, rows, cols); }, parts);
  };
  refused("fp8_block", 32, 256, {"fp8_block.weight", "[16, 256]", "[32, 256]"});
  refused("gptq", 24, 256, {"gptq.qweight", "needs [32, 24]"});
  refused("gptq", 16, 128, {"gptq.qweight", "needs [16, 16]"});
  refused("awq", 16, 250, {"awq.qweight", "groups of 128"});
  refused("int4", 16, 512, {"int4.weight_packed", "needs [16, 64]"});
  refused("nf4", 8, 256, {"nf4.weight", "[2048, 1]"});
  refused("nf4", 32, 128, {"nf4.weight", "[16,256]", "[32, 128]"});
  Quantization how = quantization("int4");
  how.group = 64;
  expect_refusal([&] { take("int4", how); }, {"int4.weight_scale", "needs [16, 4]"});
  how = quantization("fp8_block");
  how.block_rows = 4;
  expect_refusal([&] { take("fp8_block", how); }, {"fp8_block.weight_scale_inv", "each of 16 rows"});
}

/// The golden model with most of its layers in FP8: the others, and tensors without one, stay as they are.
TEST(QuantizedModel, IsReadAsAWhole) {
  const TempFolder folder;
  nlohmann::json config = read_golden_json("llama/config.json");
  config["quantization_config"] = {{"quant_method", "fp8"}, {"modules_to_not_convert", {"lm_head"}}};
  folder.write("config.json", config.dump());
  Tensors tensors;
  std::map<std::string, std::vector<float>> right;
  const SafetensorsFile plain = SafetensorsFile::open(golden("llama/model.safetensors"));
  for (const auto& [name, tensor] : plain.tensors()) {
    const std::string bytes(reinterpret_cast<const char*>(tensor.data), static_cast<size_t>(tensor.size));
    const bool linear = name.find("_proj") != std::string::npos && tensor.shape[1] % 32 == 0;
    if (!linear) {
      tensors.add(name, tensor.type.c_str(), tensor.shape, bytes);
      continue;
    }
    const std::vector<float> values = floats_of(bytes);
    const auto cols = static_cast<size_t>(tensor.shape[1]);
    std::string narrow, scales;
    for (size_t at = 0; at < values.size(); at += cols) {
      std::vector<uint8_t> row(cols);
      const float scale = to_e4m3(std::span(values).subspan(at, cols), row.data());
      narrow.append(row.begin(), row.end());
      scales += raw(scale);
      for (const uint8_t value : row) right[name].push_back(scale * from_e4m3(value));
    }
    tensors.add(name, "F8_E4M3", tensor.shape, narrow);
    tensors.add(name + "_scale", "F32", {tensor.shape[0], 1}, scales);
    // What some programs add.
    const std::string module = name.substr(0, name.rfind('.'));
    tensors.add(module + ".bias", "F32", {tensor.shape[0]},
                std::string(4 * static_cast<size_t>(tensor.shape[0]), '\0'));
    tensors.add(module + ".input_scale", "F32", {}, raw(1.0f));
  }
  folder.write("model.safetensors", tensors.bytes());
  const Model model = load_model(folder.path());
  ASSERT_EQ(model.layers.size(), 2u);
  for (const LayerWeights& layer : model.layers)
    for (const Matrix* matrix : {&layer.q, &layer.k, &layer.v, &layer.o, &layer.gate, &layer.up})
      EXPECT_EQ(matrix->read_all(), right.at(matrix->name)) << matrix->name;
  EXPECT_EQ(model.layers[0].down.dtype, DType::f32);
  EXPECT_EQ(model.output.dtype, DType::f32);
  // A bias that is not zero belongs to a model that sheaf does not know.
  Tensors other = tensors;
  other.add("model.layers.1.mlp.down_proj.bias", "F32", {32}, std::string(128, '\1'));
  folder.write("model.safetensors", other.bytes());
  expect_refusal([&] { load_model(folder.path()); },
                 {"model.layers.1.mlp.down_proj.bias", "does not belong"});
  // Without the section the type is refused.
  config.erase("quantization_config");
  folder.write("config.json", config.dump());
  expect_refusal([&] { load_model(folder.path()); }, {"F8_E4M3", "not supported"});
}

void refused_config(const nlohmann::json& section, const std::vector<std::string>& parts) {
  const nlohmann::json config{{"quantization_config", section}};
  expect_refusal([&] { read_quantization(JsonFields(config, "config.json"), "config.json"); }, parts);
}

TEST(QuantizationConfig, RefusesWhatSheafDoesNotRead) {
  using nlohmann::json;
  refused_config(3, {"quantization_config", "not an object"});
  refused_config(json::object(), {"quant_method"});
  refused_config({{"quant_method", "hqq"}}, {"\"hqq\"", "supported: fp8"});
  refused_config({{"quant_method", "fp8"}, {"fmt", "e5m2"}}, {"e5m2", "e4m3"});
  refused_config({{"quant_method", "fp8"}, {"weight_block_size", {128}}}, {"weight_block_size"});
  refused_config({{"quant_method", "fp8"}, {"weight_block_size", {128, 5}}}, {"weight_block_size", "32"});
  refused_config({{"quant_method", "gptq"}, {"bits", 3}}, {"bits", "3", "supported: 4"});
  refused_config({{"quant_method", "gptq"}, {"bits", 4}, {"group_size", 16}}, {"group_size", "16"});
  refused_config({{"quant_method", "gptq"}, {"bits", 4}, {"checkpoint_format", "marlin"}}, {"marlin"});
  refused_config({{"quant_method", "awq"}, {"version", "gemv"}}, {"gemv", "gemm"});
  refused_config({{"quant_method", "bitsandbytes"}, {"load_in_8bit", true}}, {"load_in_8bit"});
  refused_config({{"quant_method", "bitsandbytes"}, {"bnb_4bit_quant_type", "fp4"}}, {"fp4", "nf4"});
  refused_config({{"quant_method", "compressed-tensors"}}, {"config_groups"});
  const json int8{{"num_bits", 8}, {"type", "int"}};
  const json int4{{"num_bits", 4}, {"type", "int"}, {"group_size", 128}};
  refused_config({{"quant_method", "compressed-tensors"}, {"config_groups", {{"a", {{"weights", int8}}}}}},
                 {"8 bits", "int"});
  refused_config({{"quant_method", "compressed-tensors"},
                  {"config_groups", {{"a", {{"weights", int8}}}, {"b", {{"weights", int4}}}}}},
                 {"different ways"});
}

}  // namespace
}  // namespace sheaf
