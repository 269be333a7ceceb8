#include <algorithm>
#include <cmath>
#include <cstddef>
#include <map>
#include <tuple>
#include <utility>

#include "core/base/error.h"
#include "core/engine/step_batch.h"
#include "cpu/attention.h"
#include "cpu/cpu_backend.h"
#include "cpu/expert_mlp.h"
#include "cpu/products.h"
#include "cpu/reference/ops.h"

namespace sheaf {
namespace {

constexpr size_t kPicksAtOnce = kCpuPicksAtOnce;
constexpr int kMostThreads = 256;

struct Layer {
  // Empty where the model has none:
  std::vector<float> pre_attention_norm, post_attention_norm, pre_mlp_norm, post_mlp_norm, q_norm, k_norm;
  std::vector<float> qkv_bias;      ///< [(heads + 2 · kv_heads) × head_dim]
  std::vector<float> gate_up_bias;  ///< [outputs of gate_up], in turns as they are
  std::vector<float> o_bias, down_bias;
  std::vector<float> sinks;  ///< [heads]
  Linear qkv;                ///< queries, keys, values
  Linear o;
  Linear gate_up;  ///< gate, up; empty where all MLPs are experts
  Linear down;
  std::unique_ptr<const PackedExperts> experts;  ///< null: it has none
};

/// Biases of q, k and v in a row; zeros where only some have one.
std::vector<float> stack_biases(const LayerWeights& weights) {
  std::vector<float> stacked;
  if (weights.q_bias.empty() && weights.k_bias.empty() && weights.v_bias.empty()) return stacked;
  for (const auto& [bias, matrix] : {std::pair{&weights.q_bias, &weights.q},
                                     {&weights.k_bias, &weights.k},
                                     {&weights.v_bias, &weights.v}}) {
    std::vector<float> values = bias->read_all();
    values.resize(static_cast<size_t>(matrix->rows), 0.0f);
    stacked.insert(stacked.end(), values.begin(), values.end());
  }
  return stacked;
}

Layer read_layer(const LayerWeights& weights, const Products& products, ThreadPool& threads) {
  Layer layer;
  layer.pre_attention_norm = weights.pre_attention_norm.read_all();
  layer.post_attention_norm = weights.post_attention_norm.read_all();
  layer.pre_mlp_norm = weights.pre_mlp_norm.read_all();
  layer.post_mlp_norm = weights.post_mlp_norm.read_all();
  layer.q_norm = weights.q_norm.read_all();
  layer.k_norm = weights.k_norm.read_all();
  layer.qkv_bias = stack_biases(weights);
  layer.gate_up_bias = biases_in_turns(weights.gate_bias, weights.up_bias);
  layer.o_bias = weights.o_bias.read_all();
  layer.down_bias = weights.down_bias.read_all();
  layer.sinks = weights.sinks.read_all();
  layer.qkv = products.pack({&weights.q, &weights.k, &weights.v});
  layer.o = products.pack({&weights.o});
  if (!weights.gate.empty()) {
    layer.gate_up = products.pack({&weights.gate, &weights.up}, RowOrder::in_turns);
    layer.down = products.pack({&weights.down});
  }
  if (!weights.experts.empty()) layer.experts = std::make_unique<PackedExperts>(weights, products, threads);
  return layer;
}

/// A model's weights as products take them.
struct QuickWeights {
  QuickWeights(const Model& model, const Products& products, ThreadPool& threads)
      : final_norm(model.final_norm.read_all()) {
    if (!model.config.tied_output) {  // the embedding's rows are read when a token asks for them
      constexpr int64_t kRows = 256;
      const int64_t rows = model.embedding.rows;
      threads.run((rows + kRows - 1) / kRows, [&](int64_t task, int) {
        model.embedding.check_finite(task * kRows, std::min(kRows, rows - task * kRows));
      });
    }
    for (const LayerWeights& weights : model.layers) layers.push_back(read_layer(weights, products, threads));
    output = products.pack({&model.output});
    output_bias = model.output_bias.read_all();
  }

  std::vector<float> final_norm, output_bias;
  std::vector<Layer> layers;
  Linear output;
};

std::shared_ptr<const QuickWeights> read_weights(const Model& model, int threads, Precision precision) {
  ThreadPool pool(threads);
  return std::make_shared<QuickWeights>(model, Products(precision, best_kernels(), pool), pool);
}

void add(const float* y, int64_t n, float* x) {
  for (int64_t i = 0; i < n; ++i) x[i] += y[i];
}

class QuickBackend final : public Backend {
 public:
  QuickBackend(const Model& model, std::shared_ptr<const QuickWeights> weights, int threads,
               Precision precision)
      : config_(model.config),
        embedding_(model.embedding),
        files_(model.files),
        threads_(threads),
        kernels_(best_kernels()),
        products_(precision, kernels_, threads_),
        weights_(std::move(weights)),
        attention_(products_.whole_numbers()
                       ? make_int_attention(config_, kernels_, best_paged_int_kernels(), threads_)
                       : make_float_attention(config_, kernels_, threads_)) {}

  const ModelConfig& config() const override { return config_; }
  std::string describe() const override {
    return fmt::format("CPU, {}, {} thread{}", products_.describe(), threads_.size(),
                       threads_.size() == 1 ? "" : "s");
  }
  int64_t kv_bytes_per_token() const override {
    return cpu_footprint(config_, products_.precision()).kv_bytes_per_token;
  }
  int32_t preferred_tokens() const override {
    return cpu_footprint(config_, products_.precision()).preferred_tokens;
  }

  Routing routing() const override { return experts_.routing(); }

  void allocate_kv(int32_t pages, int32_t page_size) override { attention_->allocate(pages, page_size); }

  std::string kv_kind() const override { return fmt::format("CPU, {}", products_.describe()); }
  int64_t kv_slot_bytes(KvForm form) const override {
    return int64_t{config_.layer_count()} * config_.kv_heads * pair_bytes(form);
  }
  void read_kv(std::span<const int32_t> slots, std::span<std::byte> to, KvForm form) override {
    const int64_t size = config_.head_dim;
    each_pair(slots, form, [&](int64_t layer, int64_t head, int64_t place, int64_t at, float* pair) {
      if (form == KvForm::computed) return pool_.read(layer, head, place, to.data() + at);
      pool_.read(layer, head, place, pair, pair + size);
      round_vector(pair, size, to.data() + at);
      round_vector(pair + size, size, to.data() + at + rounded_bytes(size));
    });
  }
  void write_kv(std::span<const int32_t> slots, std::span<const std::byte> from, KvForm form) override {
    const int64_t size = config_.head_dim;
    each_pair(slots, form, [&](int64_t layer, int64_t head, int64_t place, int64_t at, float* pair) {
      if (form == KvForm::computed) return pool_.write(layer, head, place, from.data() + at);
      expand_vector(from.data() + at, size, pair);
      expand_vector(from.data() + at + rounded_bytes(size), size, pair + size);
      pool_.write(layer, head, place, pair, pair + size);
    });
  }

  void step(const StepBatch& batch, std::span<Picked> picked, std::span<float> logits) override {
    check_batch(batch, config_, pool_.pages(), pool_.page_size());
    if (picked.size() != batch.picks.size())
      fail("step: there are {} picks, but room for {}", batch.picks.size(), picked.size());
    if (!logits.empty() && logits.size() != picked.size() * static_cast<size_t>(config_.vocab))
      fail("step: there is room for {} logits, but {} picks × {} are needed", logits.size(), picked.size(),
           config_.vocab);
    if (batch.rows() == 0) return;
    rows_ = batch.rows();
    plans_.clear();
    for (const LayerConfig& layer : config_.layers)
      if (!plans_.contains(layer.window))
        plans_[layer.window] = plan_attention(batch, pool_, layer.window, config_.heads / config_.kv_heads,
                                              config_.kv_heads, threads_.size());
    make_room();
    products_.each_share(rows_, [&](const RowShare& share) {
      each_row(share, [&](int64_t row) {
        embed(batch.tokens[static_cast<size_t>(row)], x_.data() + row * config_.hidden);
        fill_angles(batch.positions[static_cast<size_t>(row)], angles_.data() + row * angles_stride());
        enter_row(row, weights_->layers.front().pre_attention_norm);
      });
      enter_layer(batch, 0, share);
    });
    for (size_t i = 0; i < weights_->layers.size(); ++i) run_layer(batch, static_cast<int64_t>(i));
    pick_all(batch, picked, logits);
  }

 private:
  int64_t q_size() const { return int64_t{config_.heads} * config_.head_dim; }
  int64_t kv_size() const { return int64_t{config_.kv_heads} * config_.head_dim; }
  int64_t hidden_stride() const { return round_up_to_panel(config_.hidden); }
  int64_t qkv_stride() const { return round_up_to_panel(q_size() + 2 * kv_size()); }
  int64_t angles_stride() const { return std::ssize(config_.ropes) * config_.rotary_dim; }

  void make_room() {
    x_.reserve(rows_ * config_.hidden, "hidden rows");
    angles_.reserve(rows_ * angles_stride(), "rotary angles");
    normed_.reserve(rows_, config_.hidden, config_.hidden, "normed rows");
    y_.reserve(rows_ * hidden_stride(), "projected rows");
    qkv_.reserve(rows_ * qkv_stride(), "queries, keys and values");
    mixed_.reserve(rows_, q_size(), q_size(), "attention rows");
    for (const auto& [rows, width] :
         {std::pair{&gated_, config_.ffn}, {&shared_, config_.experts.shared_ffn}})
      rows->reserve(rows_, width, round_up_to_panel(width), "MLP rows");
  }

  template <class Body>
  static void each_row(const RowShare& share, Body&& body) {
    // Rows in bundles: one alone is too little to hand to a thread.
    constexpr int64_t kBundle = 4;
    share.threads.run((share.count + kBundle - 1) / kBundle, [&](int64_t task, int) {
      const int64_t end = std::min((task + 1) * kBundle, share.count);
      for (int64_t row = task * kBundle; row < end; ++row) body(share.first + row);
    });
  }

  /// Of a key and its value.
  int64_t pair_bytes(KvForm form) const {
    return form == KvForm::computed ? pool_.pair_bytes() : 2 * rounded_bytes(config_.head_dim);
  }

  /// All keys and values of slots, with where their bytes begin (slot by slot, layer by layer) and room for
  /// two vectors.
  template <class Visit>
  void each_pair(std::span<const int32_t> slots, KvForm form, Visit&& visit) {
    threads_.run(std::ssize(slots), [&](int64_t i, int) {
      std::vector<float> pair(static_cast<size_t>(2 * config_.head_dim));
      const int64_t place = pool_.place_of_slot(slots[static_cast<size_t>(i)]);
      int64_t at = i * kv_slot_bytes(form);
      for (int64_t layer = 0; layer < config_.layer_count(); ++layer)
        for (int64_t head = 0; head < config_.kv_heads; ++head, at += pair_bytes(form))
          visit(layer, head, place, at, pair.data());
    });
  }

  void embed(TokenId token, float* x) const {
    embedding_.read(token, 1, x);
    if (config_.embedding_scale != 1)
      for (int64_t i = 0; i < config_.hidden; ++i) x[i] *= config_.embedding_scale;
  }

  void fill_angles(int32_t position, float* angles) const {
    const int32_t half = config_.rotary_dim / 2;
    for (const RopeTable& rope : config_.ropes) {
      for (int32_t i = 0; i < half; ++i)
        std::tie(angles[i], angles[half + i]) = rope_angle(rope, position, i);
      angles += config_.rotary_dim;
    }
  }

  void normalize_heads(float* heads, int64_t size, const std::vector<float>& weight) const {
    if (config_.qk_norm == QkNorm::none) return;
    const int64_t part = config_.qk_norm == QkNorm::whole ? size : config_.head_dim;
    for (int64_t i = 0; i < size; i += part)
      kernels_.rms_norm(heads + i, weight.data(), part, config_.norm_eps, heads + i);
  }

  /// Norms and rotates a row's queries and keys, and stores its key and value.
  void place_row(const Layer& layer, int64_t index, int64_t row, int32_t slot) {
    float* queries = qkv_.data() + row * qkv_stride();
    float* keys = queries + q_size();
    const float* values = keys + kv_size();
    if (!layer.qkv_bias.empty()) add(layer.qkv_bias.data(), q_size() + 2 * kv_size(), queries);
    normalize_heads(queries, q_size(), layer.q_norm);
    normalize_heads(keys, kv_size(), layer.k_norm);
    const int32_t rope = config_.layers[static_cast<size_t>(index)].rope;
    if (rope >= 0) {
      const float* angles = angles_.data() + row * angles_stride() + int64_t{rope} * config_.rotary_dim;
      for (int64_t i = 0; i < q_size() + kv_size(); i += config_.head_dim)
        rotate(angles, config_.rotary_dim, queries + i);
    }
    const float scale = config_.score_factor();
    for (int64_t i = 0; i < q_size(); ++i) queries[i] *= scale;
    const int64_t place = pool_.place_of_slot(slot);
    for (int64_t head = 0; head < config_.kv_heads; ++head)
      pool_.write(index, head, place, keys + head * config_.head_dim, values + head * config_.head_dim);
  }

  /// Adds the block's result y to the residual stream.
  void add_residual(int64_t row, const std::vector<float>& bias, const std::vector<float>& norm) {
    float* y = y_.data() + row * hidden_stride();
    if (!bias.empty()) add(bias.data(), config_.hidden, y);
    if (!norm.empty()) kernels_.rms_norm(y, norm.data(), config_.hidden, config_.norm_eps, y);
    if (config_.residual_scale != 1)
      for (int64_t i = 0; i < config_.hidden; ++i) y[i] *= config_.residual_scale;
    add(y, config_.hidden, x_.data() + row * config_.hidden);
  }

  /// Makes a row the input of the next products: normed, or as it is where no norm comes before them.
  void enter_row(int64_t row, const std::vector<float>& norm) {
    const float* x = x_.data() + row * config_.hidden;
    if (norm.empty())
      std::copy_n(x, config_.hidden, normed_.row(row));
    else
      kernels_.rms_norm(x, norm.data(), config_.hidden, config_.norm_eps, normed_.row(row));
    normed_.ready(row);
  }

  /// What comes before a layer's attention, of rows that are entered.
  void enter_layer(const StepBatch& batch, int64_t index, const RowShare& share) {
    const Layer& layer = weights_->layers[static_cast<size_t>(index)];
    normed_.multiply(layer.qkv, share, qkv_.data(), qkv_stride());
    each_row(share,
             [&](int64_t row) { place_row(layer, index, row, batch.kv_slots[static_cast<size_t>(row)]); });
  }

  /// What comes after it, up to the MLP.
  void leave_attention(const Layer& layer, const RowShare& share) {
    if (products_.whole_numbers()) each_row(share, [&](int64_t row) { mixed_.ready(row); });
    mixed_.multiply(layer.o, share, y_.data(), hidden_stride());
    each_row(share, [&](int64_t row) {
      add_residual(row, layer.o_bias, layer.post_attention_norm);
      enter_row(row, layer.pre_mlp_norm);
    });
  }

  /// The MLP that all rows go through.
  void run_mlp(const Layer& layer, const RowShare& share) {
    const Gating gating{kernels_.gated(config_.activation),
                        layer.gate_up_bias.empty() ? nullptr : layer.gate_up_bias.data()};
    ProductRows& gated = layer.experts ? shared_ : gated_;
    const int64_t width = layer.experts ? config_.experts.shared_ffn : config_.ffn;
    normed_.multiply_gated(layer.gate_up, gating, share, gated.data(), round_up_to_panel(width));
    if (products_.whole_numbers()) each_row(share, [&](int64_t row) { gated.ready(row); });
    gated.multiply(layer.down, share, y_.data(), hidden_stride());
  }

  /// What comes after the MLP, up to the next layer's attention.
  void leave_layer(const StepBatch& batch, int64_t index, const RowShare& share) {
    const Layer& layer = weights_->layers[static_cast<size_t>(index)];
    const bool last = static_cast<size_t>(index) + 1 == weights_->layers.size();
    each_row(share, [&](int64_t row) {
      add_residual(row, layer.down_bias, layer.post_mlp_norm);
      if (!last) enter_row(row, weights_->layers[static_cast<size_t>(index) + 1].pre_attention_norm);
    });
    if (!last) enter_layer(batch, index + 1, share);
  }

  /// A layer's attention and everything up to the next.
  void run_layer(const StepBatch& batch, int64_t index) {
    for (const KeyCopy& copy : batch.copies)
      for (int64_t head = 0; head < config_.kv_heads; ++head)
        pool_.copy(index, head, pool_.place_of_slot(copy.from), pool_.place_of_slot(copy.to));
    const LayerConfig& described = config_.layers[static_cast<size_t>(index)];
    const Layer& layer = weights_->layers[static_cast<size_t>(index)];
    attention_->run(plans_.at(described.window), index, qkv_.data(), qkv_stride(), layer.sinks,
                    mixed_.data());
    const bool mlp = config_.mlp_width(described) > 0;
    products_.each_share(rows_, [&](const RowShare& share) {
      leave_attention(layer, share);
      if (mlp) run_mlp(layer, share);
      if (!layer.experts) leave_layer(batch, index, share);
    });
    if (!layer.experts) return;
    experts_.run(*layer.experts, normed_, rows_, mlp, y_.data(), hidden_stride());
    products_.each_share(rows_, [&](const RowShare& share) { leave_layer(batch, index, share); });
  }

  /// What follows the output projection. There is room for whole panels.
  void finish_logits(float* row) const {
    if (!weights_->output_bias.empty()) add(weights_->output_bias.data(), config_.vocab, row);
    if (config_.logit_scale != 1)
      for (int64_t i = 0; i < config_.vocab; ++i) row[i] *= config_.logit_scale;
    if (config_.logit_cap > 0) kernels_.soft_cap(row, config_.vocab, config_.logit_cap);
  }

  void pick_all(const StepBatch& batch, std::span<Picked> picked, std::span<float> logits) {
    const int64_t stride = round_up_to_panel(config_.vocab);
    const std::span picks(batch.picks);
    is_chain_.assign(picks.size(), false);
    for (size_t i = 0; i < picks.size(); ++i)
      for (int32_t j = 0; j < picks[i].chains; ++j) is_chain_[++i] = true;
    const auto together = static_cast<int64_t>(most_picks_together(batch.picks, kPicksAtOnce));
    logits_.reserve(together * stride, "logits");
    normed_picks_.reserve(together, config_.hidden, config_.hidden, "picked rows");
    for (size_t first = 0, end; first < picks.size(); first = end) {
      end = picks_end(batch.picks, first, kPicksAtOnce);
      const auto count = static_cast<int64_t>(end - first);
      for (int64_t i = 0; i < count; ++i) {
        kernels_.rms_norm(x_.data() + int64_t{picks[first + static_cast<size_t>(i)].row} * config_.hidden,
                          weights_->final_norm.data(), config_.hidden, config_.norm_eps,
                          normed_picks_.row(i));
        normed_picks_.ready(i);
      }
      normed_picks_.multiply(weights_->output, {0, count, threads_}, logits_.data(), stride);
      threads_.run(count, [&](int64_t i, int) {
        const auto index = first + static_cast<size_t>(i);
        const std::span row(logits_.data() + i * stride, static_cast<size_t>(config_.vocab));
        finish_logits(row.data());
        if (!logits.empty()) std::copy(row.begin(), row.end(), logits.subspan(index * row.size()).begin());
        picked[index] = {};
        if (!is_chain_[index])
          picked[index] = pick_next(picks.subspan(index), batch.allowed, row.data(),
                                    static_cast<size_t>(stride), row.size());
      });
    }
  }

  ModelConfig config_;
  Matrix embedding_;
  std::vector<std::shared_ptr<const void>> files_;  ///< what the embedding points into
  ThreadPool threads_;
  const Kernels& kernels_;
  Products products_;
  std::shared_ptr<const QuickWeights> weights_;
  std::unique_ptr<Attention> attention_;
  KvPool& pool_ = attention_->pool();
  std::map<int32_t, AttentionPlan> plans_;  ///< of a step, by the window of a layer

  int64_t rows_ = 0;
  FloatBuffer x_;                        ///< [rows, hidden], the residual stream
  FloatBuffer angles_;                   ///< [rows, ropes, rotary_dim], cosines then sines
  FloatBuffer y_;                        ///< [rows, hidden]
  FloatBuffer qkv_;                      ///< [rows, (heads + 2 · kv_heads) × head_dim]
  FloatBuffer logits_;                   ///< [picks, vocab]
  ProductRows normed_{products_};        ///< [rows, hidden]
  ProductRows mixed_{products_};         ///< [rows, heads × head_dim]
  ProductRows gated_{products_};         ///< [rows, ffn]
  ProductRows shared_{products_};        ///< [rows, shared_ffn], of layers with experts
  ProductRows normed_picks_{products_};  ///< [picks, hidden]
  ExpertMlp experts_{config_, products_, kernels_, threads_};
  std::vector<bool> is_chain_;  ///< [picks]
};

}  // namespace

std::unique_ptr<Backend> make_quick_backend(const Model& model, int threads, Precision precision) {
  return std::move(make_quick_backends(model, 1, threads, precision).front());
}

std::vector<std::unique_ptr<Backend>> make_quick_backends(const Model& model, int count, int threads,
                                                          Precision precision) {
  threads = std::clamp(threads, count, kMostThreads);
  const auto weights = read_weights(model, threads, precision);
  std::vector<std::unique_ptr<Backend>> backends;
  for (int i = 0; i < count; ++i)
    backends.push_back(std::make_unique<QuickBackend>(
        model, weights, threads / count + (i < threads % count ? 1 : 0), precision));
  return backends;
}

}  // namespace sheaf
