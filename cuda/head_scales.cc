#include <algorithm>
#include <cmath>
#include <span>

#include "cuda/loaded_model.h"

namespace sheaf::cuda {
namespace {

constexpr float kLeast = 1e-10f;  // the product of two such scales is still a number of fp32

float most(std::span<const float> values) {
  float most = 0;
  for (const float value : values) most = std::max(most, std::abs(value));
  return most;
}

std::span<const float> part(const std::vector<float>& values, int64_t first, int64_t count) {
  return std::span(values).subspan(static_cast<size_t>(first), static_cast<size_t>(count));
}

class Bounds {
 public:
  explicit Bounds(const LoadedModel& model)
      : model_(model), config_(model.config), input_(std::sqrt(static_cast<float>(config_.hidden))) {
    lengths_.grow(heads() * config_.head_dim);
    if (grows()) input_ = longest_embedding() * config_.embedding_scale;
  }

  /// Layers come in order.
  void add_layer(const DeviceLayer& layer, std::vector<float>& scales) {
    const std::vector<float> lengths = weight_lengths(layer);
    const std::vector<float> bias = read(layer.qkv_bias), q_norm = read(layer.q_norm),
                             k_norm = read(layer.k_norm);
    const int32_t dim = config_.head_dim;
    std::vector<float> reach(static_cast<size_t>(dim));
    for (int32_t head = 0; head < heads(); ++head) {
      const bool query = head < config_.heads, key = !query && head < config_.heads + config_.kv_heads;
      const auto own = part(lengths, int64_t{head} * dim, dim);
      for (size_t i = 0; i < reach.size(); ++i) {
        reach[i] = input_ * own[i];
        // Keys are rounded without it.
        if (!bias.empty() && !key) reach[i] += std::abs(bias[static_cast<size_t>(head) * reach.size() + i]);
      }
      float bound = most(reach);
      if (query)
        bound = turned(reach, q_norm, head, config_.heads) * model_.layout.query_scale;
      else if (key)
        bound = turned(reach, k_norm, head - config_.heads, config_.kv_heads);
      scales.push_back(std::max(bound, kLeast) / kLargestE4m3);
    }
    if (grows())
      input_ += config_.residual_scale * (normed(layer.post_attention_norm) + normed(layer.post_mlp_norm));
  }

 private:
  /// Whether heads are made of the residual stream as it is.
  bool grows() const { return !config_.norms.pre_attention; }
  int32_t heads() const { return config_.heads + 2 * config_.kv_heads; }
  std::vector<float> read(const DeviceMemory<float>& from) const {
    std::vector<float> values(static_cast<size_t>(from.size()));
    if (values.empty()) return values;
    const cudaStream_t stream = model_.stream.get();
    check(cudaMemcpyAsync(values.data(), from.data(), values.size() * sizeof(float), cudaMemcpyDeviceToHost,
                          stream),
          "reading weights");
    check(cudaStreamSynchronize(stream), "reading weights");
    return values;
  }

  /// How long a normed vector usually is. Where norms come after, vectors add up, but hardly ever in one
  /// direction, which leaves room.
  float normed(const DeviceMemory<float>& weight) const {
    double squares = 0;
    for (const float value : read(weight)) squares += double{value} * double{value};
    return static_cast<float>(std::sqrt(squares));
  }

  float longest_embedding() const {
    const DeviceWeights& weights = model_.weights;
    const cudaStream_t stream = model_.stream.get();
    const DeviceMemory<float> lengths(config_.vocab);
    if (weights.embedding.size() > 0) {
      row_lengths(weights.embedding.data(), nullptr, config_.vocab, config_.hidden, lengths.data(), stream);
      return most(read(lengths));
    }
    constexpr int64_t together = 4096;
    const DeviceMemory<bf16> expanded(together * config_.hidden);
    PackedRows rows = weights.packed_embedding.rows;
    for (int64_t first = 0; first < config_.vocab; first += together) {
      rows.rows = std::min(together, config_.vocab - first);
      rows.data = weights.packed_embedding.rows.data + first * rows.row_bytes;
      expand_rows(rows, {}, expanded.data(), stream);
      row_lengths(expanded.data(), nullptr, static_cast<int32_t>(rows.rows), config_.hidden,
                  lengths.data() + first, stream);
    }
    return most(read(lengths));
  }

  /// Of the rows of queries, keys and values, times the weight of the norm before them.
  std::vector<float> weight_lengths(const DeviceLayer& layer) const {
    const float* norm = grows() ? nullptr : layer.pre_attention_norm.data();
    const int32_t rows = heads() * config_.head_dim;
    const cudaStream_t stream = model_.stream.get();
    if (model_.fp8)
      row_lengths(model_.fp8_weight(layer.qkv), norm, rows, config_.hidden, lengths_.data(), stream);
    else
      row_lengths(model_.bf16_weight(layer.qkv), norm, rows, config_.hidden, lengths_.data(), stream);
    return read(lengths_);
  }

  /// The largest number of a query or key after norm and rotation.
  float turned(std::span<const float> reach, const std::vector<float>& norm, int32_t head,
               int32_t of_heads) const {
    const int64_t dim = config_.head_dim, half = config_.rotary_dim / 2;
    float scale = 1;
    for (const RopeTable& rope : config_.ropes) scale = std::max(scale, rope.scale);
    if (config_.qk_norm != QkNorm::none) {
      const bool each = config_.qk_norm == QkNorm::per_head;
      const auto weights = each ? std::span<const float>(norm) : part(norm, head * dim, dim);
      return scale * std::sqrt(static_cast<float>(each ? dim : of_heads * dim)) * most(weights);
    }
    float bound = most(reach);
    for (int64_t i = 0; i < half; ++i)
      bound =
          std::max(bound, std::hypot(reach[static_cast<size_t>(i)], reach[static_cast<size_t>(i + half)]));
    return scale * bound;
  }

  const LoadedModel& model_;
  const ModelConfig& config_;
  float input_;  ///< how long the vector can be that the layer's heads are made of
  DeviceMemory<float> lengths_;
};

}  // namespace

DeviceMemory<float> head_scales(const LoadedModel& model) {
  Bounds bounds(model);
  std::vector<float> scales;
  for (const DeviceLayer& layer : model.weights.layers) bounds.add_layer(layer, scales);
  return upload_vector(scales);
}

}  // namespace sheaf::cuda
