#pragma once
#include <cmath>
#include <vector>

#include "core/model/model.h"
#include "tests/cpu/graph_runner.h"

namespace sheaf::test {

/// The transformer in fp64 with a dense mask, written apart from the backends to check them.
class DenseModel {
 public:
  explicit DenseModel(const Model& model) : model_(model), config_(model.config) {}

  GraphLogits run(const Graph& graph) const {
    std::vector<std::vector<double>> x;
    std::vector<int32_t> positions;
    std::vector<std::pair<int32_t, int32_t>> place;
    for (size_t s = 0; s < graph.size(); ++s)
      for (size_t i = 0; i < graph[s].tokens.size(); ++i) {
        std::vector<float> row(static_cast<size_t>(config_.hidden));
        model_.embedding.read(graph[s].tokens[i], 1, row.data());
        x.emplace_back(row.begin(), row.end());
        positions.push_back(graph[s].position + static_cast<int32_t>(i));
        place.emplace_back(s, i);
      }
    const size_t rows = x.size();
    std::vector<std::vector<bool>> mask(rows, std::vector<bool>(rows));
    for (size_t a = 0; a < rows; ++a)
      for (size_t b = 0; b < rows; ++b) {
        const auto& sees = graph[static_cast<size_t>(place[a].first)].sees;
        mask[a][b] = place[a].first == place[b].first
                         ? place[b].second <= place[a].second
                         : std::find(sees.begin(), sees.end(), place[b].first) != sees.end();
      }
    for (const LayerWeights& layer : model_.layers) run_layer(layer, positions, mask, x);
    GraphLogits logits(graph.size());
    for (size_t s = 0; s < graph.size(); ++s) logits[s].resize(graph[s].tokens.size());
    for (size_t a = 0; a < rows; ++a) {
      const auto y = multiply(model_.output, {}, norm(x[a], model_.final_norm, 0, x[a].size()));
      logits[static_cast<size_t>(place[a].first)][static_cast<size_t>(place[a].second)] =
          std::vector<float>(y.begin(), y.end());
    }
    return logits;
  }

 private:
  using Row = std::vector<double>;

  static Row multiply(const Matrix& weight, const Matrix& bias, const Row& x) {
    const std::vector<float> w = weight.read_all();
    Row y(static_cast<size_t>(weight.rows));
    if (!bias.empty()) {
      const std::vector<float> b = bias.read_all();
      y.assign(b.begin(), b.end());
    }
    for (size_t n = 0; n < y.size(); ++n)
      for (size_t k = 0; k < x.size(); ++k) y[n] += static_cast<double>(w[n * x.size() + k]) * x[k];
    return y;
  }

  /// The whole row with every stretch of `size` values from `first` on normed.
  Row norm(Row x, const Matrix& weight, size_t first, size_t size) const {
    const std::vector<float> w = weight.read_all();
    for (; first < x.size(); first += size) {
      double squares = 0;
      for (size_t i = 0; i < size; ++i) squares += x[first + i] * x[first + i];
      const double scale =
          1 / std::sqrt(squares / static_cast<double>(size) + static_cast<double>(config_.norm_eps));
      for (size_t i = 0; i < size; ++i) x[first + i] *= scale * static_cast<double>(w[i]);
    }
    return x;
  }

  Row norm_heads(const Row& heads, const Matrix& weight) const {
    if (config_.qk_norm == QkNorm::none) return heads;
    const bool whole = config_.qk_norm == QkNorm::whole;
    return norm(heads, weight, 0, whole ? heads.size() : static_cast<size_t>(config_.head_dim));
  }

  Row rotate(Row heads, int32_t position) const {
    const auto half = static_cast<size_t>(config_.rotary_dim / 2);
    for (size_t head = 0; head < heads.size(); head += static_cast<size_t>(config_.head_dim))
      for (size_t i = 0; i < half; ++i) {
        const double angle = position * static_cast<double>(config_.rope_freqs[i]);
        const double scale = static_cast<double>(config_.rope_scale);
        const double cosine = std::cos(angle) * scale;
        const double sine = std::sin(angle) * scale;
        const double first = heads[head + i];
        const double second = heads[head + i + half];
        heads[head + i] = first * cosine - second * sine;
        heads[head + i + half] = second * cosine + first * sine;
      }
    return heads;
  }

  void run_layer(const LayerWeights& layer, const std::vector<int32_t>& positions,
                 const std::vector<std::vector<bool>>& mask, std::vector<Row>& x) const {
    const size_t rows = x.size();
    const auto head_dim = static_cast<size_t>(config_.head_dim);
    const auto group = static_cast<size_t>(config_.heads / config_.kv_heads);
    std::vector<Row> queries(rows), keys(rows), values(rows);
    for (size_t a = 0; a < rows; ++a) {
      const Row in = config_.post_norm ? x[a] : norm(x[a], layer.attention_norm, 0, x[a].size());
      queries[a] = rotate(norm_heads(multiply(layer.q, layer.q_bias, in), layer.q_norm), positions[a]);
      keys[a] = rotate(norm_heads(multiply(layer.k, layer.k_bias, in), layer.k_norm), positions[a]);
      values[a] = multiply(layer.v, layer.v_bias, in);
    }
    for (size_t a = 0; a < rows; ++a) {
      Row mixed(queries[a].size());
      for (size_t head = 0; head < static_cast<size_t>(config_.heads); ++head) {
        Row weights(rows);
        double sum = 0;
        for (size_t b = 0; b < rows; ++b) {
          if (!mask[a][b]) continue;
          double dot = 0;
          for (size_t d = 0; d < head_dim; ++d)
            dot += queries[a][head * head_dim + d] * keys[b][head / group * head_dim + d];
          weights[b] = std::exp(dot / std::sqrt(static_cast<double>(head_dim)));
          sum += weights[b];
        }
        for (size_t b = 0; b < rows; ++b)
          for (size_t d = 0; d < head_dim; ++d)
            mixed[head * head_dim + d] += weights[b] / sum * values[b][head / group * head_dim + d];
      }
      add(x[a], multiply(layer.o, {}, mixed), layer.attention_norm);
      const Row in = config_.post_norm ? x[a] : norm(x[a], layer.mlp_norm, 0, x[a].size());
      Row gate = multiply(layer.gate, {}, in);
      const Row up = multiply(layer.up, {}, in);
      for (size_t i = 0; i < gate.size(); ++i) gate[i] = gate[i] / (1 + std::exp(-gate[i])) * up[i];
      add(x[a], multiply(layer.down, {}, gate), layer.mlp_norm);
    }
  }

  void add(Row& x, Row y, const Matrix& weight) const {
    if (config_.post_norm) y = norm(y, weight, 0, y.size());
    for (size_t i = 0; i < x.size(); ++i) x[i] += y[i];
  }

  const Model& model_;
  const ModelConfig& config_;
};

}  // namespace sheaf::test
