#include "cuda/device_weights.h"

#include <algorithm>
#include <cmath>

#include "cuda/ops.h"

namespace sheaf::cuda {
namespace {

constexpr int64_t kStagingFloats = int64_t{8} << 20;

DeviceMemory<float> upload_vector(const std::vector<float>& values) {
  DeviceMemory<float> device(static_cast<int64_t>(values.size()));
  if (!values.empty())
    check(cudaMemcpy(device.data(), values.data(), values.size() * sizeof(float), cudaMemcpyHostToDevice),
          "upload");
  return device;
}

DeviceMemory<float> upload_vector(const Matrix& matrix) {
  return matrix.empty() ? DeviceMemory<float>() : upload_vector(matrix.read_all());
}

/// Matrices one above the other, as bf16. Read as fp32 in slices, rounded on the device.
DeviceMemory<bf16> upload(std::initializer_list<const Matrix*> matrices) {
  int64_t rows = 0;
  const int64_t cols = (*matrices.begin())->cols;
  for (const Matrix* matrix : matrices) rows += matrix->rows;
  DeviceMemory<bf16> device(rows * cols);
  const int64_t slice = std::max<int64_t>(1, kStagingFloats / cols);
  PinnedMemory<float> host(slice * cols);
  DeviceMemory<float> staging(slice * cols);
  bf16* to = device.data();
  for (const Matrix* matrix : matrices) {
    for (int64_t first = 0; first < matrix->rows; first += slice) {
      const int64_t count = std::min(slice, matrix->rows - first) * cols;
      matrix->read(first, count / cols, host.data());
      check(cudaMemcpy(staging.data(), host.data(), static_cast<size_t>(count) * sizeof(float),
                       cudaMemcpyHostToDevice),
            "upload");
      round_to_bf16(staging.data(), count, to, nullptr);
      check(cudaDeviceSynchronize(), "rounding weights");
      to += count;
    }
  }
  return device;
}

std::vector<float> joined_bias(const LayerWeights& layer) {
  if (layer.q_bias.empty() && layer.k_bias.empty() && layer.v_bias.empty()) return {};
  std::vector<float> all;
  for (const auto& [bias, matrix] :
       {std::pair{&layer.q_bias, &layer.q}, {&layer.k_bias, &layer.k}, {&layer.v_bias, &layer.v}}) {
    std::vector<float> values = bias->empty() ? std::vector<float>() : bias->read_all();
    values.resize(static_cast<size_t>(matrix->rows), 0.0f);
    all.insert(all.end(), values.begin(), values.end());
  }
  return all;
}

}  // namespace

DeviceWeights upload_weights(const Model& model) {
  DeviceWeights weights;
  weights.embedding = upload({&model.embedding});
  for (const LayerWeights& layer : model.layers) {
    DeviceLayer device;
    device.attention_norm = upload_vector(layer.attention_norm);
    device.mlp_norm = upload_vector(layer.mlp_norm);
    device.q_norm = upload_vector(layer.q_norm);
    device.k_norm = upload_vector(layer.k_norm);
    device.qkv_bias = upload_vector(joined_bias(layer));
    device.qkv = upload({&layer.q, &layer.k, &layer.v});
    device.o = upload({&layer.o});
    device.gate_up = upload({&layer.gate, &layer.up});
    device.down = upload({&layer.down});
    weights.layers.push_back(std::move(device));
  }
  weights.final_norm = upload_vector(model.final_norm);
  if (!model.config.tied_output) weights.output = upload({&model.output});
  weights.rope_freqs = upload_vector(model.config.rope_freqs);
  return weights;
}

DeviceWeights random_weights(const ModelConfig& config, uint64_t seed) {
  auto matrix = [&](int64_t rows, int64_t cols) {
    DeviceMemory<bf16> device(rows * cols);
    fill_random(device.data(), rows * cols, 1.0f / std::sqrt(static_cast<float>(cols)), seed++, nullptr);
    return device;
  };
  auto ones = [](int64_t count) {
    return upload_vector(std::vector<float>(static_cast<size_t>(count), 1.0f));
  };
  const int64_t q_size = int64_t{config.heads} * config.head_dim,
                kv_size = int64_t{config.kv_heads} * config.head_dim;
  DeviceWeights weights;
  weights.embedding = matrix(config.vocab, config.hidden);
  for (int32_t i = 0; i < config.layers; ++i) {
    DeviceLayer layer;
    layer.attention_norm = ones(config.hidden);
    layer.mlp_norm = ones(config.hidden);
    if (config.qk_norm != QkNorm::none) {
      layer.q_norm = ones(config.qk_norm == QkNorm::per_head ? config.head_dim : q_size);
      layer.k_norm = ones(config.qk_norm == QkNorm::per_head ? config.head_dim : kv_size);
    }
    layer.qkv = matrix(q_size + 2 * kv_size, config.hidden);
    layer.o = matrix(config.hidden, q_size);
    layer.gate_up = matrix(int64_t{2} * config.ffn, config.hidden);
    layer.down = matrix(config.hidden, config.ffn);
    weights.layers.push_back(std::move(layer));
  }
  weights.final_norm = ones(config.hidden);
  if (!config.tied_output) weights.output = matrix(config.vocab, config.hidden);
  weights.rope_freqs = upload_vector(config.rope_freqs);
  check(cudaDeviceSynchronize(), "making random weights");
  return weights;
}

}  // namespace sheaf::cuda
