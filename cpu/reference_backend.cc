#include <algorithm>
#include <cmath>
#include <cstddef>
#include <map>

#include "core/base/error.h"
#include "core/engine/step_batch.h"
#include "core/model/router.h"
#include "cpu/cpu_backend.h"
#include "cpu/large_buffer.h"
#include "cpu/reference/ops.h"

namespace sheaf {
namespace {

using reference::Linear;

struct GatedMlp {
  Linear gate, up, down;
};

struct Layer {
  std::vector<float> pre_attention_norm, post_attention_norm, pre_mlp_norm, post_mlp_norm, q_norm, k_norm;
  Linear q, k, v, o;
  GatedMlp mlp;  ///< of no outputs where all MLPs are experts
  Linear router, shared_gate;
  std::vector<float> router_bias, sinks;
  std::vector<GatedMlp> experts;
  const RopeTable* rope = nullptr;  ///< null: heads are not rotated
  int32_t window = 0;               ///< as LayerConfig has it
  FloatBuffer keys, values;         ///< [slots, kv_heads × head_dim]
};

Layer read_layer(const LayerWeights& weights) {
  Layer layer;
  layer.pre_attention_norm = weights.pre_attention_norm.read_all();
  layer.post_attention_norm = weights.post_attention_norm.read_all();
  layer.pre_mlp_norm = weights.pre_mlp_norm.read_all();
  layer.post_mlp_norm = weights.post_mlp_norm.read_all();
  layer.q_norm = weights.q_norm.read_all();
  layer.k_norm = weights.k_norm.read_all();
  layer.q = reference::read_linear(weights.q, weights.q_bias);
  layer.k = reference::read_linear(weights.k, weights.k_bias);
  layer.v = reference::read_linear(weights.v, weights.v_bias);
  layer.o = reference::read_linear(weights.o, weights.o_bias);
  if (!weights.gate.empty())
    layer.mlp = {reference::read_linear(weights.gate, weights.gate_bias),
                 reference::read_linear(weights.up, weights.up_bias),
                 reference::read_linear(weights.down, weights.down_bias)};
  if (!weights.router.empty()) layer.router = reference::read_linear(weights.router);
  if (!weights.shared_gate.empty()) layer.shared_gate = reference::read_linear(weights.shared_gate);
  layer.router_bias = weights.router_bias.read_all();
  layer.sinks = weights.sinks.read_all();
  for (const ExpertWeights& expert : weights.experts)
    layer.experts.push_back({reference::read_linear(expert.gate, expert.gate_bias),
                             reference::read_linear(expert.up, expert.up_bias),
                             reference::read_linear(expert.down, expert.down_bias)});
  return layer;
}

class ReferenceBackend final : public Backend {
 public:
  explicit ReferenceBackend(const Model& model)
      : config_(model.config),
        embedding_(model.embedding),
        files_(model.files),
        final_norm_(model.final_norm.read_all()),
        output_(reference::read_linear(model.output, model.output_bias)) {
    embedding_.check_finite(0, embedding_.rows);
    for (const LayerWeights& weights : model.layers) {
      const LayerConfig& described = config_.layers[layers_.size()];
      layers_.push_back(read_layer(weights));
      layers_.back().window = described.window;
      if (described.rope >= 0) layers_.back().rope = &config_.ropes[static_cast<size_t>(described.rope)];
    }
  }

  const ModelConfig& config() const override { return config_; }
  std::string describe() const override { return "CPU, fp32 reference, 1 thread"; }
  int64_t kv_bytes_per_token() const override { return reference_footprint(config_).kv_bytes_per_token; }
  int32_t preferred_tokens() const override { return reference_footprint(config_).preferred_tokens; }
  Routing routing() const override { return routing_; }

  void allocate_kv(int32_t pages, int32_t page_size) override {
    if (pages <= 0 || page_size <= 0) fail("key/value pool: {} pages of {} tokens", pages, page_size);
    pages_ = pages;
    page_size_ = page_size;
    const int64_t slots = int64_t{pages} * page_size;
    const double bytes =
        static_cast<double>(slots) * static_cast<double>(config_.kv_floats_per_token()) * sizeof(float);
    check_pool(bytes, false);
    for (const bool make : {false, true})  // not both pools at once
      for (Layer& layer : layers_)
        for (FloatBuffer* half : {&layer.keys, &layer.values})
          *half = FloatBuffer(make ? slots * kv_size() : 0, "the key/value pool");
    check_pool(bytes, true);
  }

  void step(const StepBatch& batch, std::span<Picked> picked, std::span<float> logits) override {
    check_batch(batch, config_, pages_, page_size_);
    if (picked.size() != batch.picks.size())
      fail("step: there are {} picks, but room for {}", batch.picks.size(), picked.size());
    if (!logits.empty() && logits.size() != picked.size() * vocab())
      fail("step: there is room for {} logits, but {} picks × {} are needed", logits.size(), picked.size(),
           vocab());
    seen_.clear();
    for (const LayerConfig& layer : config_.layers)
      if (!seen_.contains(layer.window)) gather_keys(batch, layer.window, seen_[layer.window]);
    hidden_.resize(batch.tokens.size());
    for (size_t row = 0; row < hidden_.size(); ++row) {
      hidden_[row].resize(static_cast<size_t>(config_.hidden));
      embedding_.read(batch.tokens[row], 1, hidden_[row].data());
      for (float& value : hidden_[row]) value *= config_.embedding_scale;
    }
    for (Layer& layer : layers_) run_layer(layer, batch);
    const std::span picks(batch.picks);
    std::vector<float> rows;  // of a pick and its chains
    for (size_t first = 0; first < picks.size();) {
      const size_t count = 1 + static_cast<size_t>(picks[first].chains);
      rows.resize(count * vocab());
      for (size_t i = 0; i < count; ++i) {
        std::vector<float> x = hidden_[static_cast<size_t>(picks[first + i].row)];
        reference::rms_norm(x, final_norm_, config_.norm_eps, x);
        const std::span row = std::span(rows).subspan(i * vocab(), vocab());
        reference::apply(output_, x, row);
        for (float& logit : row) logit *= config_.logit_scale;
        reference::soft_cap(config_.logit_cap, row);
        picked[first + i] = {};
      }
      if (!logits.empty()) std::copy(rows.begin(), rows.end(), logits.subspan(first * vocab()).begin());
      picked[first] = pick_next(picks.subspan(first), batch.allowed, rows.data(), vocab(), vocab());
      first += count;
    }
  }

 private:
  int64_t kv_size() const { return int64_t{config_.kv_heads} * config_.head_dim; }
  size_t vocab() const { return static_cast<size_t>(config_.vocab); }

  using SeenKeys = std::vector<std::vector<reference::SeenKey>>;

  /// The keys that every row sees, in their order.
  void gather_keys(const StepBatch& batch, int32_t window, SeenKeys& seen) const {
    seen.assign(batch.tokens.size(), {});
    for (const AttentionTile& tile : batch.tiles) {
      const KeySpan& span = batch.spans[static_cast<size_t>(tile.span)];
      for (int32_t i = 0; i < tile.row_count; ++i) {
        const TileRow& entry = batch.tile_rows[static_cast<size_t>(tile.first_row + i)];
        const int32_t position = batch.positions[static_cast<size_t>(entry.row)];
        for (int32_t j = span.first_seen(position, window); j < entry.visible; ++j) {
          const int64_t page = batch.pages[static_cast<size_t>(span.first_page + j / page_size_)];
          seen[static_cast<size_t>(entry.row)].push_back({page * page_size_ + j % page_size_, tile.apart});
        }
      }
    }
  }

  /// A weight that is empty leaves x as it is.
  void normalize(std::vector<float>& x, const std::vector<float>& weight) const {
    if (!weight.empty()) reference::rms_norm(x, weight, config_.norm_eps, x);
  }

  void normalize_heads(std::vector<float>& heads, const std::vector<float>& weight) const {
    if (config_.qk_norm == QkNorm::none) return;
    const size_t size =
        config_.qk_norm == QkNorm::whole ? heads.size() : static_cast<size_t>(config_.head_dim);
    for (size_t i = 0; i < heads.size(); i += size) {
      const std::span part = std::span(heads).subspan(i, size);
      reference::rms_norm(part, weight, config_.norm_eps, part);
    }
  }

  void run_layer(Layer& layer, const StepBatch& batch) {
    std::vector<std::vector<float>> queries(hidden_.size());
    std::vector<float> x(static_cast<size_t>(config_.hidden));
    std::vector<float> key(static_cast<size_t>(kv_size()));
    std::vector<float> value(static_cast<size_t>(kv_size()));
    for (size_t row = 0; row < hidden_.size(); ++row) {
      x = hidden_[row];
      normalize(x, layer.pre_attention_norm);
      queries[row].resize(static_cast<size_t>(layer.q.outputs));
      reference::apply(layer.q, x, queries[row]);
      reference::apply(layer.k, x, key);
      reference::apply(layer.v, x, value);
      normalize_heads(queries[row], layer.q_norm);
      normalize_heads(key, layer.k_norm);
      if (layer.rope != nullptr)
        for (std::vector<float>* heads : {&queries[row], &key})
          reference::rotate(*layer.rope, batch.positions[row], static_cast<size_t>(config_.head_dim), *heads);
      const int64_t slot = batch.kv_slots[row] * kv_size();
      std::copy(key.begin(), key.end(), layer.keys.data() + slot);
      std::copy(value.begin(), value.end(), layer.values.data() + slot);
    }
    for (const KeyCopy& copy : batch.copies)
      for (const FloatBuffer* half : {&layer.keys, &layer.values})
        std::copy_n(half->data() + copy.from * kv_size(), kv_size(), half->data() + copy.to * kv_size());
    tokens_of_experts_.assign(layer.experts.size(), 0);
    for (size_t row = 0; row < hidden_.size(); ++row) {
      add_attention(layer, row, batch.document_softmax, queries[row]);
      add_mlp(layer, row);
    }
    routing_.add(tokens_of_experts_);
  }

  void add_attention(const Layer& layer, size_t row, const DocumentSoftmax& documents,
                     std::span<const float> queries) {
    const auto head_dim = static_cast<size_t>(config_.head_dim);
    const auto group = static_cast<size_t>(config_.heads / config_.kv_heads);
    std::vector<float> mixed(queries.size());
    for (size_t head = 0; head < static_cast<size_t>(config_.heads); ++head) {
      const size_t shift = head / group * head_dim;
      reference::Scores scores{config_.score_factor(), config_.score_cap};
      if (config_.sinks) scores.sink = layer.sinks[head];
      scores.document_temperature = documents.temperature;
      scores.document_scale = documents.scale;
      reference::attend(queries.subspan(head * head_dim, head_dim), scores, layer.keys.data() + shift,
                        layer.values.data() + shift, kv_size(), seen_.at(layer.window)[row],
                        std::span(mixed).subspan(head * head_dim, head_dim));
    }
    std::vector<float> y(static_cast<size_t>(config_.hidden));
    reference::apply(layer.o, mixed, y);
    add_residual(row, y, layer.post_attention_norm);
  }

  void apply_mlp(const GatedMlp& mlp, std::span<const float> x, std::span<float> y) const {
    std::vector<float> gate(static_cast<size_t>(mlp.gate.outputs)), up(gate.size());
    reference::apply(mlp.gate, x, gate);
    reference::apply(mlp.up, x, up);
    reference::gate(config_.activation, gate, up, gate);
    reference::apply(mlp.down, gate, y);
  }

  /// What a token's experts give, in the order of their scores, and then the MLP that all tokens share.
  void apply_experts(const Layer& layer, std::span<const float> x, std::span<float> y) {
    std::vector<float> logits(layer.experts.size()), part(y.size());
    std::vector<Choice> chosen(static_cast<size_t>(config_.experts.per_token));
    reference::apply(layer.router, x, logits);
    route(config_.experts, logits, layer.router_bias, chosen);
    std::ranges::fill(y, 0.0f);
    const auto add = [&](const GatedMlp& mlp, float weight) {
      apply_mlp(mlp, x, part);
      for (size_t i = 0; i < y.size(); ++i) y[i] += weight * part[i];
    };
    for (const auto& [expert, weight] : chosen) {
      add(layer.experts[static_cast<size_t>(expert)], weight);
      ++tokens_of_experts_[static_cast<size_t>(expert)];
    }
    if (layer.mlp.gate.outputs == 0) return;
    float gate = 0;
    if (layer.shared_gate.outputs > 0) reference::apply(layer.shared_gate, x, {&gate, 1});
    add(layer.mlp, layer.shared_gate.outputs > 0 ? 1 / (1 + std::exp(-gate)) : 1);
  }

  void add_mlp(const Layer& layer, size_t row) {
    std::vector<float> x = hidden_[row], y(x.size());
    normalize(x, layer.pre_mlp_norm);
    if (layer.experts.empty())
      apply_mlp(layer.mlp, x, y);
    else
      apply_experts(layer, x, y);
    add_residual(row, y, layer.post_mlp_norm);
  }

  void add_residual(size_t row, std::vector<float>& y, const std::vector<float>& norm) {
    normalize(y, norm);
    for (size_t i = 0; i < y.size(); ++i) hidden_[row][i] += y[i] * config_.residual_scale;
  }

  ModelConfig config_;
  Matrix embedding_;
  std::vector<std::shared_ptr<const void>> files_;
  std::vector<float> final_norm_;
  Linear output_;
  std::vector<Layer> layers_;
  int32_t pages_ = 0;
  int32_t page_size_ = 0;
  std::vector<std::vector<float>> hidden_;  ///< [rows][hidden], the residual stream
  std::map<int32_t, SeenKeys> seen_;        ///< of a step, by the window of a layer
  Routing routing_;
  std::vector<int64_t> tokens_of_experts_;  ///< [experts] of the layer at hand
};

}  // namespace

Footprint reference_footprint(const ModelConfig& config) {
  return {config.kv_floats_per_token() * int64_t{sizeof(float)}, 16};
}

std::unique_ptr<Backend> make_reference_backend(const Model& model) {
  return std::make_unique<ReferenceBackend>(model);
}

}  // namespace sheaf
