#include "cpu/reference/ops.h"

#include <algorithm>
#include <cstddef>
#include <limits>

namespace sheaf::reference {
namespace {

/// Scores of keys that are apart become logarithms of what they weigh: each key's share of their own softmax
/// times what all of them weigh together, which is raised to the power of the scale.
void weigh_documents(const Scores& how, std::span<const SeenKey> seen, std::span<float> scores) {
  if (how.document_temperature == 1 && how.document_scale == 1) return;
  float top = -std::numeric_limits<float>::infinity(), sum = 0;
  for (size_t j = 0; j < seen.size(); ++j) {
    if (!seen[j].apart) continue;
    scores[j] /= how.document_temperature;
    top = std::max(top, scores[j]);
  }
  for (size_t j = 0; j < seen.size(); ++j)
    if (seen[j].apart) sum += std::exp(scores[j] - top);
  const float together = top + std::log(sum);
  for (size_t j = 0; j < seen.size(); ++j)
    if (seen[j].apart) scores[j] = scores[j] - together + how.document_scale * together;
}

}  // namespace

Linear read_linear(const Matrix& weight, const Matrix& bias) {
  Linear linear;
  linear.inputs = weight.cols;
  linear.outputs = weight.rows;
  linear.weight.resize(static_cast<size_t>(weight.rows * weight.cols));
  std::vector<float> row(static_cast<size_t>(weight.cols));
  for (int64_t n = 0; n < weight.rows; ++n) {
    weight.read(n, 1, row.data());
    for (int64_t k = 0; k < weight.cols; ++k)
      linear.weight[static_cast<size_t>(k * weight.rows + n)] = row[static_cast<size_t>(k)];
  }
  if (!bias.empty()) linear.bias = bias.read_all();
  return linear;
}

void apply(const Linear& linear, std::span<const float> x, std::span<float> y) {
  const auto outputs = static_cast<size_t>(linear.outputs);
  std::fill(y.begin(), y.end(), 0.0f);
  for (size_t k = 0; k < static_cast<size_t>(linear.inputs); ++k) {
    const float* weight = linear.weight.data() + k * outputs;
    for (size_t n = 0; n < outputs; ++n) y[n] += x[k] * weight[n];
  }
  for (size_t n = 0; n < linear.bias.size(); ++n) y[n] += linear.bias[n];
}

void rms_norm(std::span<const float> x, std::span<const float> weight, float eps, std::span<float> out) {
  float squares = 0;
  for (const float value : x) squares += value * value;
  // Squares that overflow would leave zeros, which look like any other numbers.
  const float scale = std::isfinite(squares) ? 1.0f / std::sqrt(squares / static_cast<float>(x.size()) + eps)
                                             : std::numeric_limits<float>::quiet_NaN();
  for (size_t i = 0; i < x.size(); ++i) out[i] = x[i] * scale * weight[i];
}

void rotate(const RopeTable& rope, int32_t position, size_t head_dim, std::span<float> heads) {
  const size_t half = rope.freqs.size();
  for (size_t i = 0; i < half; ++i) {
    const auto [cosine, sine] = rope_angle(rope, position, static_cast<int32_t>(i));
    for (size_t head = 0; head < heads.size(); head += head_dim) {
      const float first = heads[head + i];
      const float second = heads[head + i + half];
      heads[head + i] = first * cosine - second * sine;
      heads[head + i + half] = second * cosine + first * sine;
    }
  }
}

void soft_cap(float cap, std::span<float> x) {
  if (cap == 0) return;
  for (float& value : x) value = cap * std::tanh(value / cap);
}

void attend(std::span<const float> query, const Scores& how, const float* keys, const float* values,
            int64_t stride, std::span<const SeenKey> seen, std::span<float> out) {
  std::fill(out.begin(), out.end(), 0.0f);
  if (seen.empty()) return;
  std::vector<float> scores(seen.size());
  for (size_t j = 0; j < seen.size(); ++j) {
    const float* key = keys + seen[j].slot * stride;
    float dot = 0;
    for (size_t i = 0; i < query.size(); ++i) dot += query[i] * key[i];
    scores[j] = dot * how.scale;
  }
  soft_cap(how.cap, scores);
  weigh_documents(how, seen, scores);
  const float top = std::max(how.sink, *std::max_element(scores.begin(), scores.end()));
  float sum = std::exp(how.sink - top);
  for (float& score : scores) {
    score = std::exp(score - top);
    sum += score;
  }
  for (size_t j = 0; j < seen.size(); ++j) {
    const float* value = values + seen[j].slot * stride;
    for (size_t i = 0; i < out.size(); ++i) out[i] += scores[j] * value[i];
  }
  for (float& value : out) value /= sum;
}

void gate(Activation activation, std::span<const float> gates, std::span<const float> up,
          std::span<float> out) {
  constexpr float kRootTwoByPi = 0.797884561f;
  for (size_t i = 0; i < out.size(); ++i) {
    if (activation == Activation::clamped) {
      const float x = std::min(gates[i], kGateClamp);
      out[i] = x / (1.0f + std::exp(-kGateSlope * x)) * (std::clamp(up[i], -kGateClamp, kGateClamp) + 1.0f);
      continue;
    }
    const float x = gates[i];
    const float active = activation == Activation::silu
                             ? x / (1.0f + std::exp(-x))
                             : 0.5f * x * (1.0f + std::tanh(kRootTwoByPi * (x + 0.044715f * x * x * x)));
    out[i] = active * up[i];
  }
}

}  // namespace sheaf::reference
