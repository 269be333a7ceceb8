#pragma once
#include <cmath>
#include <map>
#include <random>

#include "tests/files.h"
#include "tests/model/safetensors_bytes.h"

namespace sheaf::test {

/// A tiny checkpoint of Qwen3-MoE whose linear layers are stored in fewer bits, and what their weights are,
/// each by the definition of its format.
class ExpertCheckpoint {
 public:
  static constexpr int64_t kHidden = 256, kFfn = 192, kExperts = 4, kVocab = 40, kHead = 32, kGroup = 64;
  enum class Format { fp8, gptq, awq };

  explicit ExpertCheckpoint(Format format) : format_(format) {
    plain("model.embed_tokens.weight", {kVocab, kHidden});
    plain("lm_head.weight", {kVocab, kHidden});
    plain("model.norm.weight", {kHidden});
    const std::string layer = "model.layers.0.";
    for (const char* norm : {"input_layernorm", "post_attention_layernorm"})
      plain(layer + norm + ".weight", {kHidden});
    for (const char* norm : {"q_norm", "k_norm"}) plain(layer + "self_attn." + norm + ".weight", {kHead});
    linear(layer + "self_attn.q_proj", 2 * kHead, kHidden);
    for (const char* name : {"k_proj", "v_proj"}) linear(layer + "self_attn." + name, kHead, kHidden);
    linear(layer + "self_attn.o_proj", kHidden, 2 * kHead);
    plain(layer + "mlp.gate.weight", {kExperts, kHidden});
    for (int64_t i = 0; i < kExperts; ++i) {
      linear(expert(i, "gate_proj"), kFfn, kHidden);
      linear(expert(i, "up_proj"), kFfn, kHidden);
      linear(expert(i, "down_proj"), kHidden, kFfn);
    }
  }

  static std::string expert(int64_t index, const char* matrix) {
    return "model.layers.0.mlp.experts." + std::to_string(index) + "." + matrix;
  }

  nlohmann::json config() const {
    using nlohmann::json;
    const json quantization =
        format_ == Format::fp8
            ? json{{"quant_method", "fp8"}, {"fmt", "e4m3"}, {"weight_block_size", {128, 128}}}
            : json{{"quant_method", format_ == Format::gptq ? "gptq" : "awq"},
                   {"bits", 4},
                   {"group_size", kGroup}};
    return {{"model_type", "qwen3_moe"},     {"architectures", {"Qwen3MoeForCausalLM"}},
            {"hidden_size", kHidden},        {"intermediate_size", 512},
            {"moe_intermediate_size", kFfn}, {"num_experts", kExperts},
            {"num_experts_per_tok", 2},      {"norm_topk_prob", true},
            {"decoder_sparse_step", 1},      {"mlp_only_layers", json::array()},
            {"num_hidden_layers", 1},        {"num_attention_heads", 2},
            {"num_key_value_heads", 1},      {"head_dim", kHead},
            {"vocab_size", kVocab},          {"max_position_embeddings", 128},
            {"rms_norm_eps", 1e-6},          {"rope_theta", 10000.0},
            {"tie_word_embeddings", false},  {"quantization_config", quantization}};
  }
  void write(const TempFolder& folder) const {
    folder.write("config.json", config().dump());
    folder.write("model.safetensors", tensors.bytes());
  }

  Tensors tensors;
  std::map<std::string, std::vector<float>> right;  ///< of linear layers, by module

 private:
  static size_t at(int64_t index) { return static_cast<size_t>(index); }

  void plain(const std::string& name, const std::vector<int64_t>& shape) {
    std::vector<float> values(1);
    for (const int64_t size : shape) values.resize(values.size() * at(size));
    std::normal_distribution<float> normal(0, 0.1f);
    for (float& value : values) value = normal(random_) + (shape.size() == 1 ? 1.0f : 0.0f);
    tensors.add(name, shape, values);
  }

  void linear(const std::string& module, int64_t rows, int64_t cols) {
    if (format_ == Format::fp8)
      fp8(module, rows, cols);
    else
      int4(module, rows, cols);
  }

  /// S.EEEE.MMM: (1 + m/8) · 2^(e-7), or m/8 · 2^-6 where e is 0; all ones is NaN.
  static float e4m3(uint8_t bits) {
    const int exponent = bits >> 3 & 15, mantissa = bits & 7;
    const float size = exponent == 0 ? std::ldexp(static_cast<float>(mantissa), -9)
                                     : std::ldexp(static_cast<float>(8 + mantissa), exponent - 10);
    return bits & 128 ? -size : size;
  }

  void fp8(const std::string& module, int64_t rows, int64_t cols) {
    const int64_t down = (rows + 127) / 128, across = (cols + 127) / 128;
    std::vector<float> scales;
    for (int64_t i = 0; i < down * across; ++i)
      scales.push_back(static_cast<float>(1 + random_() % 100) / 50000.0f);
    std::string bytes;
    std::vector<float>& values = right[module];
    for (int64_t row = 0; row < rows; ++row)
      for (int64_t col = 0; col < cols; ++col) {
        auto bits = static_cast<uint8_t>(random_());
        if ((bits & 127) == 127) bits ^= 1;
        bytes += static_cast<char>(bits);
        values.push_back(e4m3(bits) * scales[at(row / 128 * across + col / 128)]);
      }
    tensors.add(module + ".weight", "F8_E4M3", {rows, cols}, bytes);
    tensors.add(module + ".weight_scale_inv", {down, across}, scales);
  }

  /// w = scale · (q - zero). GPTQ packs eight columns of an output into a word and stores zero - 1; AWQ packs
  /// eight outputs, the even ones first.
  void int4(const std::string& module, int64_t rows, int64_t cols) {
    const bool gptq = format_ == Format::gptq;
    const int64_t groups = cols / kGroup;
    constexpr uint32_t kAwqPlace[] = {0, 4, 1, 5, 2, 6, 3, 7};
    const auto place = [&](int64_t row) {
      return 4 * (gptq ? static_cast<uint32_t>(row % 8) : kAwqPlace[row % 8]);
    };
    std::vector<uint32_t> words(at(rows * cols / 8)), zeros(at(groups * rows / 8));
    std::vector<uint16_t> halves;
    std::vector<float> scales;
    std::vector<uint32_t> zero_of;
    for (int64_t i = 0; i < groups * rows; ++i) {
      const auto k = static_cast<uint16_t>(random_() % 64);  // (64 + k) · 2^-14 in fp16
      halves.push_back(static_cast<uint16_t>(7 << 10 | k << 4));
      scales.push_back(std::ldexp(static_cast<float>(64 + k), -14));
      zero_of.push_back(1 + static_cast<uint32_t>(random_() % 15));
      zeros[at(i / 8)] |= (zero_of.back() - (gptq ? 1 : 0)) << place(i % rows);
    }
    std::vector<float>& values = right[module];
    for (int64_t row = 0; row < rows; ++row)
      for (int64_t col = 0; col < cols; ++col) {
        const auto q = static_cast<uint32_t>(random_() % 16);
        if (gptq)
          words[at(col / 8 * rows + row)] |= q << 4 * (col % 8);
        else
          words[at(col * (rows / 8) + row / 8)] |= q << place(row);
        const int64_t group = col / kGroup * rows + row;
        values.push_back(scales[at(group)] *
                         (static_cast<float>(q) - static_cast<float>(zero_of[at(group)])));
      }
    const auto bytes = [](const auto& list) {
      return std::string(reinterpret_cast<const char*>(list.data()), list.size() * sizeof list[0]);
    };
    if (gptq)
      tensors.add(module + ".qweight", "I32", {cols / 8, rows}, bytes(words));
    else
      tensors.add(module + ".qweight", "I32", {cols, rows / 8}, bytes(words));
    tensors.add(module + ".qzeros", "I32", {groups, rows / 8}, bytes(zeros));
    tensors.add(module + ".scales", "F16", {groups, rows}, bytes(halves));
  }

  Format format_;
  std::mt19937 random_{7};
};

}  // namespace sheaf::test
