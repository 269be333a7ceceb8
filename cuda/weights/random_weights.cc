#include <cmath>

#include "core/backend/footprint.h"
#include "core/base/error.h"
#include "cuda/weights/device_weights.h"

namespace sheaf::cuda {

DeviceWeights random_weights(const ModelConfig& config, WeightKind kind, uint64_t seed) {
  DeviceWeights weights;
  auto values = [&](int64_t rows, int64_t cols) {
    DeviceMemory<bf16> device(rows * cols);
    fill_random(device.data(), rows * cols, 1.0f / std::sqrt(static_cast<float>(cols)), seed++, nullptr);
    return device;
  };
  auto part = [&](int64_t rows, int64_t cols, const RowPlace& place) {
    if (cols % block_values(DType::q4_k) != 0) refuse("{} columns are not whole blocks of Q4_K", cols);
    PackedPart made = make_part(DType::q4_k, rows, cols, place);
    fill_random_q4_k(made.memory.data(), made.memory.size() / block_bytes(DType::q4_k),
                     1.0f / std::sqrt(static_cast<float>(cols)), seed++ * 0x9e3779b9u, nullptr);
    return made;
  };
  // Experts with biases come in MXFP4, and what is beside them in bf16.
  const bool all_packed = kind.packed && !config.experts.biases;
  auto matrix = [&](int64_t rows, int64_t cols) {
    DeviceMatrix device;
    if (all_packed) {
      device.packed.push_back(part(rows, cols, {}));
      if (kind.fp8) find_scales(device);
      return device;
    }
    device.wide = values(rows, cols);
    if (!kind.fp8) return device;
    device.narrow.grow(rows * cols);
    device.scales.grow(rows);
    round_weights(device.wide.data(), rows, cols, device.narrow.data(), device.scales.data(), nullptr);
    check(cudaDeviceSynchronize(), "rounding random weights");
    device.wide = {};
    return device;
  };
  auto packed_experts = [&](DeviceExperts& experts) {
    const Experts& described = config.experts;
    const auto part_of = [&](int64_t rows, int64_t cols, const RowPlace& place) {
      if (cols % block_values(DType::mxfp4) != 0) refuse("{} columns are not whole blocks of MXFP4", cols);
      PackedPart made = make_part(DType::mxfp4, rows * described.count, cols, place);
      fill_random_mxfp4(made.memory.data(), made.memory.size() / block_bytes(DType::mxfp4),
                        1.0f / std::sqrt(static_cast<float>(cols)), seed++ * 0x9e3779b9u, nullptr);
      return made;
    };
    const RowOrder order = kind.fp8 ? RowOrder::by_sixteens : RowOrder::by_eights;
    experts.gate_up.packed.push_back(part_of(described.ffn, config.hidden, {0, order}));
    experts.gate_up.packed.push_back(part_of(described.ffn, config.hidden, {8, order}));
    experts.down.packed.push_back(part_of(config.hidden, described.ffn, {}));
    settle_mxfp4(experts, kind, weights.mxfp4);
  };
  auto ones = [](int64_t count) {
    return upload_vector(std::vector<float>(static_cast<size_t>(count), 1.0f));
  };
  auto zeros = [](int64_t count) {
    return upload_vector(std::vector<float>(static_cast<size_t>(count), 0.0f));
  };
  const int64_t q_size = int64_t{config.heads} * config.head_dim,
                kv_size = int64_t{config.kv_heads} * config.head_dim;
  if (all_packed && !config.tied_output)
    weights.packed_embedding = part(config.vocab, config.hidden, {});
  else
    weights.embedding = values(config.vocab, config.hidden);
  for (int32_t i = 0; i < config.layer_count(); ++i) {
    DeviceLayer layer;
    if (config.norms.pre_attention) layer.pre_attention_norm = ones(config.hidden);
    if (config.norms.post_attention) layer.post_attention_norm = ones(config.hidden);
    if (config.norms.pre_mlp) layer.pre_mlp_norm = ones(config.hidden);
    if (config.norms.post_mlp) layer.post_mlp_norm = ones(config.hidden);
    if (config.qk_norm != QkNorm::none) {
      layer.q_norm = ones(config.qk_norm == QkNorm::per_head ? config.head_dim : q_size);
      layer.k_norm = ones(config.qk_norm == QkNorm::per_head ? config.head_dim : kv_size);
    }
    if (config.biases.q || config.biases.k || config.biases.v) layer.qkv_bias = ones(q_size + 2 * kv_size);
    layer.qkv = matrix(q_size + 2 * kv_size, config.hidden);
    layer.o = matrix(config.hidden, q_size);
    if (config.biases.o) layer.o_bias = ones(config.hidden);
    if (config.sinks) layer.sinks = ones(config.heads);
    const LayerConfig& described = config.layers[static_cast<size_t>(i)];
    if (const int64_t width = config.mlp_width(described); width > 0) {
      layer.gate_up = matrix(2 * width, config.hidden);
      layer.down = matrix(config.hidden, width);
    }
    if (described.experts) {
      const Experts& experts = config.experts;
      layer.experts.router = values(router_rows(experts), config.hidden);
      DeviceExperts& device = layer.experts;
      if (experts.choice_bias || experts.logit_bias) device.router_bias = zeros(experts.count);
      device.narrow = kind.fp8;
      if (kind.packed && experts.biases) {
        packed_experts(device);
      } else {
        device.gate_up = matrix(int64_t{2} * experts.ffn * experts.count, config.hidden);
        device.down = matrix(int64_t{config.hidden} * experts.count, experts.ffn);
      }
      if (experts.biases) {
        device.gate_up_bias = zeros(int64_t{2} * experts.ffn * experts.count);
        device.down_bias = zeros(int64_t{config.hidden} * experts.count);
      }
    }
    weights.layers.push_back(std::move(layer));
  }
  weights.final_norm = ones(config.hidden);
  if (!config.tied_output) weights.output = values(config.vocab, config.hidden);
  weights.rope_freqs = upload_vector(frequencies(config));
  check(cudaDeviceSynchronize(), "making random weights");
  return weights;
}

}  // namespace sheaf::cuda
