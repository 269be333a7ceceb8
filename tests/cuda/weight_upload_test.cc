// What lies on the device after loading, against Matrix::read rounded on the host: every bit, for every kind
// of model file.
#include <algorithm>
#include <cstring>
#include <gtest/gtest.h>
#include <random>

#include "core/backend/footprint.h"
#include "cuda/base/devices.h"
#include "cuda/weights/device_weights.h"
#include "io/model/model_files.h"
#include "tests/cuda/need_gpu.h"
#include "tests/model/finite_blocks.h"
#include "tests/random_model.h"

namespace sheaf::cuda {
namespace {

template <class T>
std::vector<T> downloaded(const DeviceMemory<T>& device) {
  std::vector<T> host(static_cast<size_t>(device.size()));
  if (!host.empty())
    check(cudaMemcpy(host.data(), device.data(), host.size() * sizeof(T), cudaMemcpyDeviceToHost),
          "download");
  return host;
}

/// Bit by bit; a NaN equals itself.
template <class T>
bool same(const std::vector<T>& got, const std::vector<T>& right) {
  return got.size() == right.size() &&
         (got.empty() || std::memcmp(got.data(), right.data(), got.size() * sizeof(T)) == 0);
}

std::vector<bf16> stacked(std::initializer_list<const Matrix*> matrices) {
  std::vector<bf16> all;
  for (const Matrix* matrix : matrices)
    for (const float value : matrix->read_all()) all.push_back(__float2bfloat16(value));
  return all;
}

std::vector<float> plain(const Matrix& matrix) {
  return matrix.empty() ? std::vector<float>() : matrix.read_all();
}

/// Eight rows of the first half, eight of the second, and so on.
template <class T>
std::vector<T> interleaved(const std::vector<T>& halves, int64_t cols) {
  std::vector<T> result(halves.size());
  const auto row_size = static_cast<size_t>(cols), rows = halves.size() / row_size / 2;
  for (size_t row = 0; row < 2 * rows; ++row) {
    const size_t inside = row % rows, to = inside / 8 * 16 + inside % 8 + (row < rows ? 0 : 8);
    std::copy_n(halves.begin() + static_cast<ptrdiff_t>(row * row_size), cols,
                result.begin() + static_cast<ptrdiff_t>(to * row_size));
  }
  return result;
}

std::vector<float> joined_bias(const LayerWeights& layer) {
  std::vector<float> all;
  if (layer.q_bias.empty() && layer.k_bias.empty() && layer.v_bias.empty()) return all;
  for (const auto& [bias, rows] : {std::pair{&layer.q_bias, layer.q.rows},
                                   {&layer.k_bias, layer.k.rows},
                                   {&layer.v_bias, layer.v.rows}}) {
    std::vector<float> part = plain(*bias);
    part.resize(static_cast<size_t>(rows), 0.0f);
    all.insert(all.end(), part.begin(), part.end());
  }
  return all;
}

template <class T>
void append(std::vector<T>& all, const std::vector<T>& more) {
  all.insert(all.end(), more.begin(), more.end());
}

void compare_experts(const Model& model, const LayerWeights& host, const DeviceExperts& device) {
  std::vector<bf16> router, gate_up, down;
  for (const Matrix* part : {&host.router, &host.shared_gate})
    if (!part->empty()) append(router, stacked({part}));
  if (!host.router.empty())
    router.resize(static_cast<size_t>(router_rows(model.config.experts) * model.config.hidden),
                  __float2bfloat16(0.0f));
  for (const ExpertWeights& expert : host.experts) {
    append(gate_up, interleaved(stacked({&expert.gate, &expert.up}), expert.gate.cols));
    append(down, stacked({&expert.down}));
  }
  EXPECT_TRUE(same(downloaded(device.router), router));
  EXPECT_TRUE(same(downloaded(device.router_bias), plain(host.router_bias)));
  EXPECT_TRUE(same(downloaded(device.gate_up.wide), gate_up));
  EXPECT_TRUE(same(downloaded(device.down.wide), down));
  std::vector<float> gate_up_bias, down_bias;
  for (const ExpertWeights& expert : host.experts) {
    std::vector<float> both = plain(expert.gate_bias);
    append(both, plain(expert.up_bias));
    append(gate_up_bias, both.empty() ? both : interleaved(both, 1));
    append(down_bias, plain(expert.down_bias));
  }
  EXPECT_TRUE(same(downloaded(device.gate_up_bias), gate_up_bias));
  EXPECT_TRUE(same(downloaded(device.down_bias), down_bias));
}

void compare(const Model& model) {
  const DeviceWeights device = upload_weights(model, {false, false});
  ASSERT_EQ(device.layers.size(), model.layers.size());
  EXPECT_TRUE(same(downloaded(device.embedding), stacked({&model.embedding})));
  EXPECT_TRUE(same(downloaded(device.final_norm), plain(model.final_norm)));
  if (!model.config.ropes.empty()) {
    EXPECT_TRUE(same(downloaded(device.rope_freqs), model.config.ropes.front().freqs));
  }
  if (model.config.tied_output)
    EXPECT_EQ(device.output.size(), 0);
  else
    EXPECT_TRUE(same(downloaded(device.output), stacked({&model.output})));
  for (size_t i = 0; i < model.layers.size(); ++i) {
    SCOPED_TRACE(testing::Message() << "layer " << i);
    const LayerWeights& host = model.layers[i];
    const DeviceLayer& layer = device.layers[i];
    EXPECT_TRUE(same(downloaded(layer.pre_attention_norm), plain(host.pre_attention_norm)));
    EXPECT_TRUE(same(downloaded(layer.post_attention_norm), plain(host.post_attention_norm)));
    EXPECT_TRUE(same(downloaded(layer.pre_mlp_norm), plain(host.pre_mlp_norm)));
    EXPECT_TRUE(same(downloaded(layer.post_mlp_norm), plain(host.post_mlp_norm)));
    EXPECT_TRUE(same(downloaded(layer.q_norm), plain(host.q_norm)));
    EXPECT_TRUE(same(downloaded(layer.k_norm), plain(host.k_norm)));
    EXPECT_TRUE(same(downloaded(layer.qkv_bias), joined_bias(host)));
    EXPECT_TRUE(same(downloaded(layer.qkv.wide), stacked({&host.q, &host.k, &host.v})));
    EXPECT_TRUE(same(downloaded(layer.o.wide), stacked({&host.o})));
    EXPECT_TRUE(same(downloaded(layer.o_bias), plain(host.o_bias)));
    std::vector<float> sinks = plain(host.sinks);
    for (float& sink : sinks) sink *= 1.4426950408889634f;
    EXPECT_TRUE(same(downloaded(layer.sinks), sinks));
    const std::vector<bf16> both = stacked({&host.gate, &host.up});
    EXPECT_TRUE(
        same(downloaded(layer.gate_up.wide), both.empty() ? both : interleaved(both, host.gate.cols)));
    EXPECT_TRUE(same(downloaded(layer.down.wide), stacked({&host.down})));
    compare_experts(model, host, layer.experts);
  }
}

struct Case {
  const char* model;
  const char* adapter;
};

/// F32, BF16, F16 and sharded safetensors, F16 and quantized GGUF with paired rows, biases, fused
/// projections, norms of q and k, tied outputs, experts one by one and stacked, adapters on each.
constexpr Case cases[] = {{"llama", ""},
                          {"llama3", ""},
                          {"llama_linear", ""},
                          {"smollm", ""},
                          {"qwen2", ""},
                          {"qwen3", ""},
                          {"phi3", ""},
                          {"olmo2", ""},
                          {"olmoe", ""},
                          {"mixtral", ""},
                          {"granitemoe", ""},
                          {"gpt_oss", ""},
                          {"gpt_oss_gguf/model.gguf", ""},
                          {"gpt_oss_mxfp4", ""},
                          {"gpt_oss_mxfp4_gguf/model.gguf", ""},
                          {"olmoe_gguf/model.gguf", ""},
                          {"llama_gguf/model.gguf", ""},
                          {"llama_quantized_gguf/model.gguf", ""},
                          {"qwen2_gguf/model.gguf", ""},
                          {"olmo2_gguf/model.gguf", ""},
                          {"llama", "llama_lora"},
                          {"llama_gguf/model.gguf", "llama_lora"},
                          {"phi3", "phi3_lora"}};

TEST(WeightUpload, EveryGoldenModelArrivesBitForBit) {
  NEED_GPU();
  const std::string goldens = "tests/model/goldens/";
  for (const auto& [model, adapter] : cases) {
    SCOPED_TRACE(std::string(model) + " " + adapter);
    compare(load_model(goldens + model, *adapter == '\0' ? "" : goldens + adapter));
  }
}

/// A model of one layer whose matrices are larger than a buffer of the ring, of random blocks of one type.
/// `mask` takes bits out of every two bytes.
Model large_model(DType dtype, bool paired, bool adapted, uint32_t mask = 0xffff) {
  std::mt19937_64 random(static_cast<uint64_t>(dtype) + 1);
  Model model;
  const auto matrix = [&](const char* name, int64_t rows, int64_t cols) {
    Matrix made;
    made.name = name;
    made.dtype = dtype;
    made.rows = rows;
    made.cols = cols;
    auto blocks = std::make_shared<std::vector<std::byte>>(static_cast<size_t>(rows * made.row_bytes()));
    fill_with_finite_blocks(dtype, blocks->data(), rows * cols / block_values(dtype), random, mask);
    made.data = blocks->data();
    model.files.push_back(blocks);
    if (adapted && rows > 1) {
      auto delta = std::make_shared<LowRank>();
      delta->rank = 2;
      delta->scale = 0.5f;
      std::normal_distribution<float> normal;
      for (int64_t i = 0; i < 2 * cols; ++i) delta->a.push_back(normal(random));
      for (int64_t i = 0; i < 2 * rows; ++i) delta->b.push_back(normal(random));
      made.adapter = delta;
    }
    return made;
  };
  const int64_t hidden = 1024, ffn = 5000, kv = 256;
  LayerWeights layer;
  layer.pre_attention_norm = matrix("attention_norm", 1, hidden);
  layer.pre_mlp_norm = matrix("mlp_norm", 1, hidden);
  layer.q = matrix("q", hidden, hidden);
  layer.k = matrix("k", kv, hidden);
  layer.v = matrix("v", kv, hidden);
  layer.k_bias = matrix("k_bias", 1, kv);  // only one of three
  if (paired) layer.q.rope_head_dim = layer.k.rope_head_dim = 128;
  layer.o = matrix("o", hidden, hidden);
  layer.gate = matrix("gate", ffn, hidden);
  layer.up = matrix("up", ffn, hidden);
  layer.down = matrix("down", hidden, 5120);
  model.embedding = matrix("embedding", 7001, hidden);
  model.final_norm = matrix("final_norm", 1, hidden);
  model.output = matrix("output", 7001, hidden);
  model.layers.push_back(std::move(layer));
  return model;
}

constexpr std::array kEveryType{
    DType::f32,  DType::f16,   DType::bf16, DType::q8_0,    DType::q4_0,     DType::q4_1,    DType::q5_0,
    DType::q4_k, DType::q5_k,  DType::q6_k, DType::e4m3_32, DType::e4m3_128, DType::int4_32, DType::int4_128,
    DType::nf4,  DType::mxfp4, DType::q2_k, DType::q3_k,    DType::iq4_nl,   DType::iq4_xs};

TEST(WeightUpload, ExpertsArriveBesideSharedOnes) {
  NEED_GPU();
  const auto shared = [](ModelConfig& config) {
    test::use_experts(config);
    config.experts.ffn = 24;
    config.experts.shared_ffn = 16;
  };
  for (const auto change : {+shared, test::use_sigmoid_experts}) {
    const Model model = test::make_random_model({.change = change}, 1);
    compare(model);
    EXPECT_GE(weight_bytes(model, {}), upload_weights(model, {}).bytes());
  }
}

TEST(WeightUpload, EveryTypeArrivesBitForBitInManySlices) {
  NEED_GPU();
  for (const DType dtype : kEveryType) {
    SCOPED_TRACE(dtype_name(dtype));
    compare(large_model(dtype, dtype != DType::bf16, dtype == DType::q4_k));
  }
}

/// A packed matrix as a product would read it.
template <class T, class Expand>
std::vector<T> expanded(const DeviceMatrix& matrix, const Expand& expand) {
  const DeviceMemory<T> out(matrix.values());
  for (const PackedPart& part : matrix.packed) expand(part, out.data());
  return downloaded(out);
}

TEST(WeightUpload, PackedWeightsExpandToTheSameBits) {
  NEED_GPU();
  std::vector<std::pair<DType, bool>> cases;
  for (const DType dtype : kEveryType) cases.emplace_back(dtype, false);
  for (const DType dtype : {DType::bf16, DType::q4_k, DType::q6_k, DType::nf4})
    cases.emplace_back(dtype, true);
  for (const auto& [dtype, adapted] : cases) {
    SCOPED_TRACE(fmt::format("{}{}", dtype_name(dtype), adapted ? " with an adapter" : ""));
    // Without the highest bit of their exponents, halves and floats are small.
    Model model = large_model(dtype, dtype != DType::bf16, adapted, 0xbfff);
    model.embedding.adapter = nullptr;
    LayerWeights& layer = model.layers[0];
    layer.gate.rows = layer.up.rows = 4992;  // e4m3 goes by sixteens
    ASSERT_TRUE(can_stay_packed(model));
    for (const bool fp8 : {false, true}) {
      const DeviceWeights right = upload_weights(model, {fp8, false}),
                          packed = upload_weights(model, {fp8, true});
      const bool smaller = 8 * block_bytes(dtype) < (fp8 ? 8 : 16) * block_values(dtype);
      EXPECT_TRUE(!smaller || adapted || packed.bytes() < right.bytes());
      const DeviceLayer &a = right.layers[0], &b = packed.layers[0];
      for (const auto& [whole, parts] :
           {std::pair{&a.qkv, &b.qkv}, {&a.o, &b.o}, {&a.gate_up, &b.gate_up}, {&a.down, &b.down}}) {
        EXPECT_EQ(whole->values(), parts->values());
        if (fp8) {
          EXPECT_TRUE(same(downloaded(whole->scales), downloaded(parts->scales)));
          const auto bytes = expanded<e4m3>(*parts, [&](const PackedPart& part, e4m3* out) {
            expand_rows(part.rows, part.place, parts->peaks.data(), out, nullptr);
          });
          // What is e4m3 in the file is so from the start.
          EXPECT_TRUE(
              same(downloaded(whole->narrow), parts->packed.empty() ? downloaded(parts->narrow) : bytes));
        } else {
          const auto values = expanded<bf16>(*parts, [](const PackedPart& part, bf16* out) {
            expand_rows(part.rows, part.place, out, nullptr);
          });
          // What is bf16 in the file is so from the start.
          EXPECT_TRUE(
              same(downloaded(whole->wide), parts->packed.empty() ? downloaded(parts->wide) : values));
        }
      }
      // Embeddings too.
      const std::vector<int32_t> tokens{0, 7000, 3, 3};
      DeviceMemory<int32_t> named(4);
      check(cudaMemcpy(named.data(), tokens.data(), 16, cudaMemcpyHostToDevice), "tokens");
      const DeviceMemory<float> x(4 * 1024), y(4 * 1024);
      embed(right.embedding.data(), named.data(), 4, 1024, x.data(), nullptr);
      embed(packed.packed_embedding.rows, named.data(), 4, y.data(), nullptr);
      EXPECT_TRUE(same(downloaded(x), downloaded(y)));
    }
  }
}

}  // namespace
}  // namespace sheaf::cuda
