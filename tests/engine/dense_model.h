#pragma once
#include <cmath>
#include <cstdint>
#include <vector>

#include "core/base/token.h"
#include "core/model/model.h"

namespace sheaf::test {

/// A transformer with a dense mask, in double precision, recomputed from scratch at every call: what the
/// graph, the pages and the tiles must amount to. Llama-shaped models only. Returns the logits of every
/// token, [tokens][vocab].
inline std::vector<std::vector<double>> dense_forward(const Model& model, const Tokens& tokens,
                                                      const std::vector<int32_t>& positions,
                                                      const std::vector<uint8_t>& mask) {
  using Rows = std::vector<std::vector<double>>;
  const ModelConfig& config = model.config;
  const size_t n = tokens.size();
  const auto head_dim = static_cast<size_t>(config.head_dim);
  auto norm = [&](const std::vector<double>& x, const Matrix& weight) {
    const std::vector<float> w = weight.read_all();
    double square = 0;
    for (double v : x) square += v * v;
    const double scale =
        1 / std::sqrt(square / static_cast<double>(x.size()) + static_cast<double>(config.norm_eps));
    std::vector<double> out(x.size());
    for (size_t i = 0; i < x.size(); ++i) out[i] = x[i] * scale * static_cast<double>(w[i]);
    return out;
  };
  auto project = [&](const Rows& in, const Matrix& weight) {
    const std::vector<float> w = weight.read_all();
    const auto rows = static_cast<size_t>(weight.rows), cols = static_cast<size_t>(weight.cols);
    Rows out(in.size(), std::vector<double>(rows, 0));
    for (size_t t = 0; t < in.size(); ++t)
      for (size_t r = 0; r < rows; ++r)
        for (size_t c = 0; c < cols; ++c) out[t][r] += in[t][c] * static_cast<double>(w[r * cols + c]);
    return out;
  };
  auto rotate = [&](Rows& x, int32_t heads) {
    const size_t half = static_cast<size_t>(config.rotary_dim) / 2;
    for (size_t t = 0; t < n; ++t)
      for (size_t h = 0; h < static_cast<size_t>(heads); ++h)
        for (size_t i = 0; i < half; ++i) {
          const double angle = positions[t] * static_cast<double>(config.rope_freqs[i]);
          double &a = x[t][h * head_dim + i], &b = x[t][h * head_dim + half + i];
          const double a0 = a;
          a = a * std::cos(angle) - b * std::sin(angle);
          b = b * std::cos(angle) + a0 * std::sin(angle);
        }
  };
  Rows x;
  const std::vector<float> embedding = model.embedding.read_all();
  const auto hidden = static_cast<size_t>(config.hidden);
  for (TokenId token : tokens)
    x.emplace_back(embedding.begin() + static_cast<ptrdiff_t>(static_cast<size_t>(token) * hidden),
                   embedding.begin() + static_cast<ptrdiff_t>((static_cast<size_t>(token) + 1) * hidden));
  auto normed = [&](const Matrix& weight) {
    Rows out;
    for (const auto& row : x) out.push_back(norm(row, weight));
    return out;
  };
  for (const LayerWeights& layer : model.layers) {
    const Rows in = normed(layer.attention_norm);
    Rows q = project(in, layer.q), k = project(in, layer.k), v = project(in, layer.v);
    rotate(q, config.heads);
    rotate(k, config.kv_heads);
    Rows mixed(n, std::vector<double>(static_cast<size_t>(config.heads) * head_dim, 0));
    const size_t group = static_cast<size_t>(config.heads / config.kv_heads);
    for (size_t t = 0; t < n; ++t)
      for (size_t h = 0; h < static_cast<size_t>(config.heads); ++h) {
        std::vector<double> score(n, 0);
        double sum = 0;
        for (size_t s = 0; s < n; ++s) {
          if (!mask[t * n + s]) continue;
          double dot = 0;
          for (size_t i = 0; i < head_dim; ++i)
            dot += q[t][h * head_dim + i] * k[s][h / group * head_dim + i];
          score[s] = std::exp(dot / std::sqrt(static_cast<double>(head_dim)));
          sum += score[s];
        }
        for (size_t s = 0; s < n; ++s)
          for (size_t i = 0; i < head_dim; ++i)
            mixed[t][h * head_dim + i] += score[s] / sum * v[s][h / group * head_dim + i];
      }
    const Rows attended = project(mixed, layer.o);
    for (size_t t = 0; t < n; ++t)
      for (size_t i = 0; i < hidden; ++i) x[t][i] += attended[t][i];
    const Rows mlp_in = normed(layer.mlp_norm);
    Rows gate = project(mlp_in, layer.gate), up = project(mlp_in, layer.up);
    for (size_t t = 0; t < n; ++t)
      for (size_t i = 0; i < gate[t].size(); ++i)
        gate[t][i] = gate[t][i] / (1 + std::exp(-gate[t][i])) * up[t][i];
    const Rows down = project(gate, layer.down);
    for (size_t t = 0; t < n; ++t)
      for (size_t i = 0; i < hidden; ++i) x[t][i] += down[t][i];
  }
  return project(normed(model.final_norm), model.output);
}

}  // namespace sheaf::test
