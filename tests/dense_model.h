#pragma once
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <numbers>
#include <utility>
#include <vector>

#include "core/base/token.h"
#include "core/model/model.h"
#include "core/segments/stack.h"

namespace sheaf::test {

/// The transformer in fp64 with a dense mask, every token computed from scratch at every call: what the
/// graph, the pages and the tiles must amount to. Written apart from the backends to check them.
class DenseModel {
 public:
  using Row = std::vector<double>;

  explicit DenseModel(const Model& model)
      : config_(model.config),
        embedding_(read(model.embedding)),
        final_norm_(read(model.final_norm)),
        output_(read(model.output)),
        output_bias_(read(model.output_bias)) {
    for (const LayerWeights& layer : model.layers) {
      layers_.push_back({config_.layers[layers_.size()],
                         read(layer.pre_attention_norm),
                         read(layer.post_attention_norm),
                         read(layer.pre_mlp_norm),
                         read(layer.post_mlp_norm),
                         read(layer.q_norm),
                         read(layer.k_norm),
                         read(layer.q),
                         read(layer.k),
                         read(layer.v),
                         read(layer.o),
                         read(layer.gate),
                         read(layer.up),
                         read(layer.down),
                         read(layer.q_bias),
                         read(layer.k_bias),
                         read(layer.v_bias),
                         read(layer.o_bias),
                         read(layer.gate_bias),
                         read(layer.up_bias),
                         read(layer.down_bias),
                         read(layer.router),
                         read(layer.router_bias),
                         read(layer.shared_gate),
                         read(layer.sinks),
                         {}});
      for (const ExpertWeights& expert : layer.experts)
        layers_.back().experts.push_back({read(expert.gate), read(expert.up), read(expert.down),
                                          read(expert.gate_bias), read(expert.up_bias),
                                          read(expert.down_bias)});
    }
  }

  /// Logits of every token, [tokens][vocab]. `mask`: [tokens × tokens], whether a token sees another; 2 where
  /// it weighs it by `documents`.
  std::vector<Row> run(const Tokens& tokens, const std::vector<int32_t>& positions,
                       const std::vector<uint8_t>& mask, const DocumentSoftmax& documents = {}) const {
    std::vector<Row> x;
    for (const TokenId token : tokens) {
      const auto first = embedding_.begin() + static_cast<ptrdiff_t>(token) * config_.hidden;
      x.emplace_back(first, first + config_.hidden);
      for (double& value : x.back()) value *= static_cast<double>(config_.embedding_scale);
    }
    for (const Layer& layer : layers_) run_layer(layer, positions, mask, documents, x);
    for (Row& row : x) {
      row = multiply(output_, norm(row, final_norm_, row.size()), output_bias_);
      for (double& logit : row)
        logit = capped(logit * static_cast<double>(config_.logit_scale), config_.logit_cap);
    }
    return x;
  }

  /// Logits of the token after `tokens`, where each sees the tokens before it.
  Row run_causal(const Tokens& tokens) const {
    const size_t n = tokens.size();
    std::vector<int32_t> positions(n);
    std::vector<uint8_t> mask(n * n);
    for (size_t i = 0; i < n; ++i) {
      positions[i] = static_cast<int32_t>(i);
      for (size_t j = 0; j <= i; ++j) mask[i * n + j] = 1;
    }
    return run(tokens, positions, mask).back();
  }

 private:
  struct Layer {
    LayerConfig config;
    Row pre_attention_norm, post_attention_norm, pre_mlp_norm, post_mlp_norm, q_norm, k_norm;
    Row q, k, v, o, gate, up, down, q_bias, k_bias, v_bias, o_bias, gate_bias, up_bias, down_bias;
    Row router, router_bias, shared_gate, sinks;
    std::vector<std::array<Row, 6>> experts;  ///< gate, up, down and the biases of each
  };

  static double capped(double x, float cap) {
    return cap == 0 ? x : static_cast<double>(cap) * std::tanh(x / static_cast<double>(cap));
  }

  static Row read(const Matrix& matrix) {
    if (matrix.empty()) return {};
    const std::vector<float> values = matrix.read_all();
    return {values.begin(), values.end()};
  }

  /// `bias`: empty for none.
  static Row multiply(const Row& weight, const Row& x, const Row& bias = {}) {
    Row y = bias;
    y.resize(weight.size() / x.size());
    const double* w = weight.data();
    for (double& sum : y)
      for (const double value : x) sum += *w++ * value;
    return y;
  }

  /// Norms every stretch of `size` values; without a weight they stay.
  Row norm(Row x, const Row& weight, size_t size) const {
    if (weight.empty()) return x;
    for (size_t first = 0; first < x.size(); first += size) {
      double squares = 0;
      for (size_t i = 0; i < size; ++i) squares += x[first + i] * x[first + i];
      const double scale =
          1 / std::sqrt(squares / static_cast<double>(size) + static_cast<double>(config_.norm_eps));
      for (size_t i = 0; i < size; ++i) x[first + i] *= scale * weight[i];
    }
    return x;
  }

  Row norm_heads(const Row& heads, const Row& weight) const {
    if (config_.qk_norm == QkNorm::none) return heads;
    const bool whole = config_.qk_norm == QkNorm::whole;
    return norm(heads, weight, whole ? heads.size() : static_cast<size_t>(config_.head_dim));
  }

  Row rotate(Row heads, const LayerConfig& layer, int32_t position) const {
    if (layer.rope < 0) return heads;
    const RopeTable& rope = config_.ropes[static_cast<size_t>(layer.rope)];
    const auto half = static_cast<size_t>(config_.rotary_dim / 2);
    for (size_t i = 0; i < half; ++i) {
      const double angle = position * static_cast<double>(rope.freqs[i]);
      const double scale = static_cast<double>(rope.scale);
      const double cosine = std::cos(angle) * scale, sine = std::sin(angle) * scale;
      for (size_t head = 0; head < heads.size(); head += static_cast<size_t>(config_.head_dim)) {
        const double first = heads[head + i], second = heads[head + i + half];
        heads[head + i] = first * cosine - second * sine;
        heads[head + i + half] = second * cosine + first * sine;
      }
    }
    return heads;
  }

  void run_layer(const Layer& layer, const std::vector<int32_t>& positions, const std::vector<uint8_t>& mask,
                 const DocumentSoftmax& documents, std::vector<Row>& x) const {
    const size_t rows = x.size();
    std::vector<Row> queries(rows), keys(rows), values(rows);
    for (size_t a = 0; a < rows; ++a) {
      const Row in = norm(x[a], layer.pre_attention_norm, x[a].size());
      const auto place = [&](const Row& heads, const Row& weight) {
        return rotate(norm_heads(heads, weight), layer.config, positions[a]);
      };
      queries[a] = place(multiply(layer.q, in, layer.q_bias), layer.q_norm);
      keys[a] = place(multiply(layer.k, in, layer.k_bias), layer.k_norm);
      values[a] = multiply(layer.v, in, layer.v_bias);
    }
    for (size_t a = 0; a < rows; ++a) {
      std::vector<uint8_t> sees(mask.begin() + static_cast<ptrdiff_t>(a * rows),
                                mask.begin() + static_cast<ptrdiff_t>((a + 1) * rows));
      for (size_t b = 0; b < rows && layer.config.window > 0; ++b)
        if (positions[a] - positions[b] >= layer.config.window) sees[b] = 0;
      const Row mixed = attend(queries[a], keys, values, layer.sinks, sees.data(), documents);
      add(x[a], multiply(layer.o, mixed, layer.o_bias), layer.post_attention_norm);
      const Row in = norm(x[a], layer.pre_mlp_norm, x[a].size());
      Row out(in.size());
      if (!layer.gate.empty()) {
        Row gate = multiply(layer.gate, in, layer.gate_bias);
        gate_by(gate, multiply(layer.up, in, layer.up_bias));
        out = multiply(layer.down, gate, layer.down_bias);
        if (!layer.shared_gate.empty())
          for (double& value : out) value *= sigmoid(multiply(layer.shared_gate, in).front());
      }
      if (!layer.experts.empty()) add_experts(layer, in, out);
      add(x[a], out, layer.post_mlp_norm);
    }
  }

  static double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }
  void gate_by(Row& gate, const Row& up) const {
    for (size_t i = 0; i < gate.size(); ++i) {
      if (config_.activation != Activation::clamped) {
        gate[i] = activate(gate[i]) * up[i];
        continue;
      }
      const double x = std::min(gate[i], 7.0), y = std::min(std::max(up[i], -7.0), 7.0);
      gate[i] = x * sigmoid(1.702 * x) * (y + 1);
    }
  }

  void add_experts(const Layer& layer, const Row& in, Row& out) const {
    const Experts& experts = config_.experts;
    const bool of_logits = experts.logit_bias;
    Row scores = multiply(layer.router, in, of_logits ? layer.router_bias : Row{});
    double sum = 0;
    for (double& score : scores) {
      score = experts.scores == RouterScores::sigmoid ? sigmoid(score) : std::exp(score);
      sum += score;
    }
    if (experts.scores == RouterScores::softmax)
      for (double& score : scores) score /= sum;
    std::vector<std::pair<double, size_t>> ranks;
    for (size_t i = 0; i < scores.size(); ++i)
      ranks.emplace_back(-scores[i] - (layer.router_bias.empty() || of_logits ? 0 : layer.router_bias[i]), i);
    std::ranges::sort(ranks);
    ranks.resize(static_cast<size_t>(experts.per_token));
    sum = 0;
    for (const auto& [rank, i] : ranks) sum += scores[i];
    for (const auto& [rank, i] : ranks) {
      const auto& [gate, up, down, gate_bias, up_bias, down_bias] = layer.experts[i];
      Row inside = multiply(gate, in, gate_bias);
      gate_by(inside, multiply(up, in, up_bias));
      const Row given = multiply(down, inside, down_bias);
      const double weight = scores[i] / (experts.normalized ? sum : 1) * static_cast<double>(experts.factor);
      for (size_t n = 0; n < out.size(); ++n) out[n] += weight * given[n];
    }
  }

  double activate(double x) const {
    if (config_.activation == Activation::silu) return x / (1 + std::exp(-x));
    return x / 2 * (1 + std::tanh(std::sqrt(2 / std::numbers::pi) * (x + 0.044715 * x * x * x)));
  }

  Row attend(const Row& query, const std::vector<Row>& keys, const std::vector<Row>& values, const Row& sinks,
             const uint8_t* sees, const DocumentSoftmax& documents) const {
    const auto head_dim = static_cast<size_t>(config_.head_dim);
    const auto group = static_cast<size_t>(config_.heads / config_.kv_heads);
    Row mixed(query.size());
    for (size_t head = 0; head < static_cast<size_t>(config_.heads); ++head) {
      const double* q = &query[head * head_dim];
      const size_t kv = head / group * head_dim;
      Row weights(keys.size());
      double sum = sinks.empty() ? 0 : std::exp(sinks[head]), of_documents = 0;
      for (size_t b = 0; b < keys.size(); ++b) {
        if (!sees[b]) continue;
        double dot = 0;
        for (size_t d = 0; d < head_dim; ++d) dot += q[d] * keys[b][kv + d];
        const double score = capped(dot * static_cast<double>(config_.score_factor()), config_.score_cap);
        weights[b] = std::exp(sees[b] == 2 ? score / static_cast<double>(documents.temperature) : score);
        (sees[b] == 2 ? of_documents : sum) += weights[b];
      }
      // out = (Z^S · softmax over documents + softmax numerators of all else) / (Z^S + all else)
      const double scaled =
          of_documents > 0 ? std::pow(of_documents, static_cast<double>(documents.scale)) : 0;
      for (size_t b = 0; b < keys.size(); ++b)
        if (sees[b] == 2) weights[b] *= scaled / of_documents;
      sum += scaled;
      for (size_t b = 0; b < keys.size(); ++b)
        for (size_t d = 0; sees[b] && d < head_dim; ++d)
          mixed[head * head_dim + d] += weights[b] / sum * values[b][kv + d];
    }
    return mixed;
  }

  void add(Row& x, Row y, const Row& weight) const {
    y = norm(y, weight, y.size());
    for (size_t i = 0; i < x.size(); ++i) x[i] += y[i] * static_cast<double>(config_.residual_scale);
  }

  const ModelConfig config_;
  const Row embedding_, final_norm_, output_, output_bias_;
  std::vector<Layer> layers_;
};

}  // namespace sheaf::test
