#include "cuda/cuda_backend.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>

#include "core/base/error.h"
#include "core/engine/check_batch.h"
#include "core/engine/pick.h"
#include "cuda/activations.h"
#include "cuda/attention/attention_plan.h"
#include "cuda/base/device_memory.h"
#include "cuda/base/stage_clock.h"
#include "cuda/base/staging.h"
#include "cuda/gemm/products.h"
#include "cuda/layer_graphs.h"
#include "cuda/ops/ops.h"
#include "cuda/weights/device_weights.h"

namespace sheaf {
namespace {

using namespace cuda;

constexpr int64_t kTimedSteps = 8;                  // one of so many is timed stage by stage
constexpr int64_t kPicksAtOnce = 1024;              // rows of logits held at once
constexpr int64_t kBesideStep = int64_t{64} << 20;  // for graphs and kernels that are loaded late
constexpr int64_t kStepBesidePool = 1024;           // rows of a step that the pool must leave room for

int32_t padded_head_dim(int32_t head_dim) {
  for (int32_t padded : {32, 64, 128, 256})
    if (head_dim <= padded) return padded;
  refuse("heads of {} are too large for the CUDA engine (at most 256); use engine.device: cpu", head_dim);
}

/// Refuses what the kernels cannot do, before anything is uploaded.
void check_model(const ModelConfig& config, const CudaOptions& options) {
  const auto cannot = [](std::string what) { refuse("{}; use engine.device: cpu", what); };
  const int32_t padded = padded_head_dim(config.head_dim), group = config.heads / config.kv_heads;
  const int32_t most = options.reproducible ? kSmallBlock : kLargeBlock;
  if (config.head_dim % 2 != 0)
    cannot(fmt::format("heads of {} are odd, which the CUDA engine cannot do", config.head_dim));
  if (group > most)
    cannot(fmt::format("{} query heads for one of keys and values are more than the CUDA engine takes{} ({})",
                       group, options.reproducible ? " with engine.reproducible" : "", most));
  if (config.ffn % 8 != 0) cannot(fmt::format("an MLP of width {} is not a multiple of 8", config.ffn));
  int available = 0;
  check(cudaDeviceGetAttribute(&available, cudaDevAttrMaxSharedMemoryPerBlockOptin, options.device),
        "asking for the device's shared memory");
  if (attention_shared_bytes(padded) > available)
    cannot(fmt::format("heads of {} need {} kB of shared memory and this GPU has {}", config.head_dim,
                       attention_shared_bytes(padded) / 1000, available / 1000));
}

/// Kernels remember what they found out about the device they ran on first.
void check_one_device(int device) {
  static const int first = device;
  if (device != first)
    fail("this process computes on cuda:{} already; use another process for cuda:{}", first, device);
}

bool on_host(const Pick& pick) {
  return pick.temperature > 0;
}

class CudaBackend final : public Backend {
 public:
  CudaBackend(ModelConfig config, DeviceWeights weights, const CudaOptions& options)
      : config_(std::move(config)),
        weights_(std::move(weights)),
        device_(options.device),
        reproducible_(options.reproducible),
        graphs_wanted_(options.graphs),
        replayed_(options.replayed) {
    check(cudaStreamCreate(&stream_), "making a stream");
    for (Flight& flight : flights_)
      check(cudaEventCreateWithFlags(&flight.done, cudaEventDisableTiming), "making an event");
    products_.emplace(reproducible_);
    products_->set_stream(stream_);
    layers_to_run_ = config_.layers;
    cudaDeviceProp properties{};
    check(cudaGetDeviceProperties(&properties, device_), "reading the device's properties");
    name_ = properties.name;
    multiprocessors_ = properties.multiProcessorCount;
    layout_.heads = config_.heads;
    layout_.kv_heads = config_.kv_heads;
    layout_.head_dim = config_.head_dim;
    layout_.padded_dim = padded_head_dim(config_.head_dim);
    layout_.rotary_dim = config_.rotary_dim;
    layout_.norm = static_cast<int32_t>(config_.qk_norm);
    layout_.eps = config_.norm_eps;
    layout_.rope_scale = config_.rope_scale;
    layout_.query_scale =
        static_cast<float>(1.4426950408889634 / std::sqrt(static_cast<double>(config_.head_dim)));
  }
  ~CudaBackend() override {
    cudaStreamSynchronize(stream_);
    graphs_.forget();
    products_.reset();
    for (const Flight& flight : flights_) cudaEventDestroy(flight.done);
    cudaStreamDestroy(stream_);
  }

  const ModelConfig& config() const override { return config_; }
  std::string describe() const override {
    return fmt::format("{} (cuda:{}), bf16{}", name_, device_, reproducible_ ? ", reproducible" : "");
  }
  int64_t kv_bytes_per_token() const override { return cuda_needs(config_).kv_bytes_per_token; }
  int32_t preferred_rows() const override { return cuda_needs(config_).preferred_rows; }
  std::vector<std::pair<std::string, double>> stage_seconds() const override {
    std::vector<std::pair<std::string, double>> result;
    for (size_t i = 0; i < kStageNames.size() && detailed_seconds_ > 0; ++i)
      result.emplace_back(kStageNames[i], stage_seconds_[i] * device_seconds_ / detailed_seconds_);
    return result;
  }

  void allocate_kv(int32_t pages, int32_t page_size) override {
    if (page_size < 2 || 64 % page_size != 0)
      fail("pages of {} tokens do not divide a block of 64 keys", page_size);
    check(cudaSetDevice(device_), "choosing the device");
    const int64_t slots = int64_t{pages} * page_size;
    const int64_t values = int64_t{2} * config_.layers * config_.kv_heads * slots * layout_.padded_dim;
    const int64_t step = Activations::bytes(kStepBesidePool, config_, layout_) + kBesideStep;
    const int64_t free_bytes = cuda_free_bytes(device_) + pool_.size() * int64_t{sizeof(f16)};
    if (values > pool_.size() && values * int64_t{sizeof(f16)} + step > free_bytes)
      throw OutOfMemory(fmt::format("CUDA: {} MB of keys and values do not leave {} MB for a step",
                                    values * int64_t{sizeof(f16)} / 1000000, step / 1000000));
    pool_.grow(values);
    pages_ = pages;
    page_size_ = page_size;
    layout_.slots = slots;
    // Hidden values count as 0 × what lies there, which must be a number.
    check(cudaMemsetAsync(pool_.data(), 0, static_cast<size_t>(pool_.size()) * sizeof(f16), stream_),
          "clearing the pool");
    replays_ = graphs_wanted_ && hopper_attention(layout_, page_size);
    graphs_.forget();
    planner_.emplace(
        AttentionShape{group(), page_size, 4 * multiprocessors_ / config_.kv_heads, reproducible_});
    for (int32_t rows : {preferred_rows(), 64}) warm_up(rows);
  }

  int32_t steps_at_once() const override { return static_cast<int32_t>(flights_.size()); }

  void start(const StepBatch& batch, std::span<Picked> picked) override { launch(batch, picked, {}); }

  void step(const StepBatch& batch, std::span<Picked> picked, std::span<float> logits) override {
    if (in_flight_ > 0) fail("a step is to run at once while others are in flight");
    launch(batch, picked, logits);
    finish();
  }

  void finish() override {
    if (in_flight_ == 0) fail("no step is in flight");
    const Flight& flight = flights_[oldest_];
    oldest_ = (oldest_ + 1) % flights_.size();
    --in_flight_;
    check(cudaEventSynchronize(flight.done), "a step");
    if (!flight.batch->tokens.empty())
      flight.clock.add_to(stage_seconds_, detailed_seconds_, device_seconds_);
    const std::vector<Pick>& picks = flight.batch->picks;
    for (size_t i = 0; i < picks.size(); ++i) {
      const GreedyResult& chosen = flight.chosen.data()[i];
      const bool experts = picks[i].experts > 0;
      if (!on_host(picks[i]))
        flight.picked[i] = {chosen.token, chosen.logprob, experts ? chosen.contrast : 0.0f};
      for (int32_t k = picks[i].experts; k > 0; --k) flight.picked[++i] = {};
    }
  }

 private:
  /// What a step in flight has of its own. All the rest is used by one step after the other on the stream.
  struct Flight {
    const StepBatch* batch = nullptr;
    std::span<Picked> picked;
    Staging staging;
    PinnedMemory<GreedyResult> chosen;
    StageClock clock;
    cudaEvent_t done = nullptr;
  };

  void launch(const StepBatch& batch, std::span<Picked> picked, std::span<float> logits) {
    check_batch(batch, config_, pages_, page_size_);
    if (in_flight_ == flights_.size()) fail("{} steps are in flight already", in_flight_);
    Flight& flight = flights_[(oldest_ + in_flight_) % flights_.size()];
    flight.batch = &batch;
    flight.picked = picked;
    staging_ = &flight.staging;
    rows_ = batch.rows();
    if (rows_ > 0) {
      try {
        stage(batch);
        make_room(batch, flight);
      } catch (const OutOfMemory&) {
        check(cudaStreamSynchronize(stream_), "the steps before");
        graphs_.forget();
        room_ = {};  // or a smaller step would find no more memory than this one
        throw;
      }
      staging_->send(inputs_.data(), stream_);
      clock_ = &flight.clock;
      const bool timed = steps_++ % kTimedSteps == 0;
      clock_->begin(timed, stream_);
      rope_table(weights_.rope_freqs.data(), input<int32_t>(positions_), rows_, layout_, room_.rope.data(),
                 stream_);
      embed(weights_.embedding.data(), input<int32_t>(tokens_), rows_, config_.hidden, room_.x.data(),
            stream_);
      if (config_.post_norm)
        round_to_bf16(room_.x.data(), int64_t{rows_} * config_.hidden, room_.normed.data(), stream_);
      clock_->mark(Stage::other);
      if (timed || !replays_ || layers_to_run_ < config_.layers)
        run_layers();
      else if (graphs_.run({rows_, attention_.small_items > 0, attention_.large_items > 0,
                            attention_.merged_count > 0},
                           stream_, [&] { run_layers(); }))
        if (replayed_) ++*replayed_;
      pick_all(flight, logits);
      clock_->mark(Stage::pick);
      clock_->end();
    }
    check(cudaEventRecord(flight.done, stream_), "a step's end");
    check(cudaGetLastError(), "starting a step");
    ++in_flight_;
  }

  /// A step of one layer, so that the first real one need not load kernels and choose among cuBLAS's.
  void warm_up(int32_t most_rows) {
    const int32_t rows = static_cast<int32_t>(std::min<int64_t>(most_rows, layout_.slots));
    StepBatch batch;
    batch.spans.push_back({0, rows});
    batch.tiles.push_back({0, 0, rows});
    for (int32_t row = 0; row < rows; ++row) {
      batch.tokens.push_back(0);
      batch.positions.push_back(row);
      batch.kv_slots.push_back(row);
      batch.tile_rows.push_back({row, row + 1});
      if (row % page_size_ == 0) batch.pages.push_back(row / page_size_);
      if (row < kPicksAtOnce) batch.picks.push_back({.row = row});
    }
    std::vector<Picked> picked(batch.picks.size());
    layers_to_run_ = 1;
    try {
      step(batch, picked, {});
    } catch (const OutOfMemory&) {
      // The engine will ask for smaller steps; what is not warm now gets warm then.
    }
    layers_to_run_ = config_.layers;
    steps_ = 0;
    stage_seconds_ = {};
    detailed_seconds_ = device_seconds_ = 0;
  }

  int64_t q_size() const { return int64_t{config_.heads} * config_.head_dim; }
  int64_t qkv_size() const { return q_size() + int64_t{2} * config_.kv_heads * config_.head_dim; }
  int32_t group() const { return config_.heads / config_.kv_heads; }
  /// Values of the keys, or of the values, of one layer.
  int64_t layer_pool() const { return int64_t{config_.kv_heads} * layout_.slots * layout_.padded_dim; }

  void stage(const StepBatch& batch) {
    planner_->plan(batch, plan_);
    staging_->clear();
    tokens_ = staging_->add(std::span<const int32_t>(batch.tokens));
    positions_ = staging_->add(std::span<const int32_t>(batch.positions));
    kv_slots_ = staging_->add(std::span<const int32_t>(batch.kv_slots));
    // Up to here places depend on the number of rows alone, so that a graph finds the slots and this again.
    attention_at_ = staging_->add(std::span<const AttentionInputs>(&attention_, 1));
    const int64_t items = staging_->add(std::span<const AttentionItem>(plan_.items));
    const int64_t attended = staging_->add(std::span<const int32_t>(plan_.rows));
    const int64_t pages = staging_->add(std::span<const AttentionPage>(plan_.pages));
    const int64_t merged_rows = staging_->add(std::span<const int32_t>(plan_.merged_rows));
    const int64_t partial_begin = staging_->add(std::span<const int32_t>(plan_.partial_begin));
    const int64_t partials = staging_->add(std::span<const int32_t>(plan_.partials));
    picked_rows_.clear();
    greedy_picks_.clear();
    for (const Pick& pick : batch.picks) {
      picked_rows_.push_back(pick.row);
      greedy_picks_.push_back({pick.first_allowed, pick.allowed_count});
    }
    list_experts(batch.picks);
    experts_ = staging_->add(std::span<const ExpertPick>(expert_picks_));
    groups_ = staging_->add(std::span<const ExpertGroup>(expert_groups_));
    pick_rows_ = staging_->add(std::span<const int32_t>(picked_rows_));
    greedy_ = staging_->add(std::span<const GreedyPick>(greedy_picks_));
    allowed_ = staging_->add(std::span<const int32_t>(batch.allowed));
    if (inputs_.size() < staging_->capacity()) {
      check(cudaStreamSynchronize(stream_), "the steps before");  // they read what is to be replaced
      graphs_.forget();
      inputs_.grow(staging_->capacity());
    }
    attention_ = {input<AttentionItem>(items),
                  plan_.small_items,
                  static_cast<int32_t>(plan_.items.size()) - plan_.small_items,
                  input<int32_t>(attended),
                  input<AttentionPage>(pages),
                  page_size_,
                  input<int32_t>(merged_rows),
                  input<int32_t>(partial_begin),
                  input<int32_t>(partials),
                  static_cast<int32_t>(plan_.merged_rows.size()),
                  plan_.partial_rows};
    staging_->put(attention_at_, attention_);
  }
  void list_experts(const std::vector<Pick>& picks) {
    expert_groups_.clear();
    expert_picks_.clear();
    if (std::none_of(picks.begin(), picks.end(), [](const Pick& pick) { return pick.experts > 0; })) return;
    expert_picks_.assign(picks.size(), {-1, 0, 0, 0, 0});
    for (size_t i = 0; i < picks.size(); ++i) {
      if (picks[i].experts == 0) continue;
      const auto amateur = static_cast<int32_t>(i), group = static_cast<int32_t>(expert_groups_.size());
      expert_groups_.push_back(
          {amateur, picks[i].experts, picks[i].contrast, static_cast<int32_t>(picks[i].aggregate)});
      double sum = 0, high = -INFINITY;
      const auto experts = std::span(picks).subspan(i + 1, static_cast<size_t>(picks[i].experts));
      for (const Pick& expert : experts) high = std::max(high, static_cast<double>(expert.prior));
      for (const Pick& expert : experts) sum += std::exp(static_cast<double>(expert.prior) - high);
      for (const Pick& expert : experts) {
        ++i;
        expert_picks_[i] = {amateur, group, expert_groups_.back().contrast < 0, expert.prior,
                            static_cast<float>(static_cast<double>(expert.prior) - high - std::log(sum))};
        greedy_picks_[i].allowed_count = -1;
      }
    }
  }

  /// The scores of the picks in [first, end) that have experts, whose logits are there.
  void fuse(int64_t first, int64_t end) {
    if (expert_groups_.empty()) return;
    const auto at = [&](int64_t pick) {
      return static_cast<int32_t>(std::find_if(expert_groups_.begin(), expert_groups_.end(),
                                               [&](const ExpertGroup& group) { return group.pick >= pick; }) -
                                  expert_groups_.begin());
    };
    const auto any = [&](auto&& is) { return std::any_of(expert_groups_.begin(), expert_groups_.end(), is); };
    const ExpertInputs inputs{input<ExpertPick>(experts_),
                              input<ExpertGroup>(groups_),
                              at(first),
                              at(end) - at(first),
                              any([](const ExpertGroup& group) { return group.contrast < 0; }),
                              any([](const ExpertGroup& group) { return group.aggregate != 0; }),
                              room_.expert_sums.data(),
                              room_.expert_sums.data() + room_.size.picks_at_once};
    fuse_experts(inputs, room_.logits.data(), static_cast<int32_t>(first), static_cast<int32_t>(end - first),
                 config_.vocab, room_.picks.data() + first, stream_);
  }

  /// Where the step's arrays are on the device.
  template <class T>
  const T* input(int64_t offset) const {
    return reinterpret_cast<const T*>(inputs_.data() + offset);
  }

  /// After this the step needs no more memory.
  void make_room(const StepBatch& batch, Flight& flight) {
    const auto picks = static_cast<int64_t>(batch.picks.size());
    const auto together = static_cast<int64_t>(most_picks_together(batch.picks, kPicksAtOnce));
    const Activations::Size size{rows_, plan_.partial_rows, picks, together};
    if (!room_.holds(size)) {
      check(cudaStreamSynchronize(stream_), "the steps before");  // they use what is to be replaced
      graphs_.forget();
      room_.grow(size, config_, layout_);
    }
    flight.chosen.grow(room_.size.picks);
  }

  void run_layers() {
    for (int32_t i = 0; i < layers_to_run_; ++i) run_layer(i);
  }

  void run_layer(int32_t index) {
    const DeviceLayer& layer = weights_.layers[static_cast<size_t>(index)];
    const bool post = config_.post_norm;
    const float eps = config_.norm_eps;
    const int32_t hidden = config_.hidden;
    f16* keys = pool_.data() + int64_t{2} * index * layer_pool();
    f16* values = keys + layer_pool();

    if (!post)
      rms_norm(room_.x.data(), nullptr, layer.attention_norm.data(), rows_, hidden, eps, room_.normed.data(),
               stream_);
    clock_->mark(Stage::norms);
    products_->heads(layer.qkv.data(), room_.normed.data(), rows_, hidden,
                     {layer.qkv_bias.data(), layer.q_norm.data(), layer.k_norm.data(), room_.rope.data(),
                      input<int32_t>(kv_slots_), layout_, room_.q.data(), keys, values},
                     Scratch(room_.qkv));
    clock_->mark(Stage::heads);
    attend(attention_, input<AttentionInputs>(attention_at_), layout_,
           {room_.q.data(), keys, values, room_.partial_out.data(), room_.partial_lse.data(),
            room_.mixed.data()},
           stream_);
    clock_->mark(Stage::attention);
    if (post) {
      products_->multiply(layer.o.data(), room_.mixed.data(), rows_, hidden, q_size(), room_.y.data());
      clock_->mark(Stage::attention_output);
      add_rms_norm(room_.y.data(), layer.attention_norm.data(), rows_, hidden, eps, room_.x.data(),
                   room_.normed.data(), stream_);
    } else {
      products_->add(layer.o.data(), room_.mixed.data(), rows_, hidden, q_size(), room_.x.data());
      clock_->mark(Stage::attention_output);
      rms_norm(room_.x.data(), nullptr, layer.mlp_norm.data(), rows_, hidden, eps, room_.normed.data(),
               stream_);
    }
    clock_->mark(Stage::norms);
    products_->gated(layer.gate_up.data(), room_.normed.data(), rows_, config_.ffn, hidden,
                     Scratch(room_.gate_up), room_.mlp.data());
    clock_->mark(Stage::mlp_up);
    if (post) {
      products_->multiply(layer.down.data(), room_.mlp.data(), rows_, hidden, config_.ffn, room_.y.data());
      clock_->mark(Stage::mlp_down);
      add_rms_norm(room_.y.data(), layer.mlp_norm.data(), rows_, hidden, eps, room_.x.data(),
                   room_.normed.data(), stream_);
    } else {
      products_->add(layer.down.data(), room_.mlp.data(), rows_, hidden, config_.ffn, room_.x.data());
      clock_->mark(Stage::mlp_down);
    }
  }

  void pick_all(const Flight& flight, std::span<float> logits) {
    const StepBatch& batch = *flight.batch;
    const auto picks = static_cast<int64_t>(batch.picks.size());
    const bool some_on_host = std::any_of(batch.picks.begin(), batch.picks.end(), on_host);
    for (int64_t first = 0, end; first < picks; first = end) {
      end = static_cast<int64_t>(picks_end(batch.picks, static_cast<size_t>(first), kPicksAtOnce));
      const int64_t count = end - first;
      // The rows are done with, so the buffer of normed rows is free for the picked ones.
      rms_norm(room_.x.data(), input<int32_t>(pick_rows_) + first, weights_.final_norm.data(),
               static_cast<int32_t>(count), config_.hidden, config_.norm_eps, room_.normed.data(), stream_);
      products_->multiply(weights_.output_or_embedding(), room_.normed.data(), count, config_.vocab,
                          config_.hidden, room_.logits.data());
      if (some_on_host || !logits.empty()) pick_on_host(flight, first, count, logits);
      fuse(first, end);
      pick_greedy(room_.logits.data(), input<GreedyPick>(greedy_) + first, input<int32_t>(allowed_),
                  static_cast<int32_t>(count), config_.vocab, room_.picks.data() + first, stream_);
    }
    if (picks > 0)
      check(
          cudaMemcpyAsync(flight.chosen.data(), room_.picks.data(),
                          static_cast<size_t>(picks) * sizeof(GreedyResult), cudaMemcpyDeviceToHost, stream_),
          "picked tokens");
  }

  /// Waits for the logits of `count` picks from `first` on, hands them out and draws from them.
  void pick_on_host(const Flight& flight, int64_t first, int64_t count, std::span<float> logits) {
    const StepBatch& batch = *flight.batch;
    const auto vocab = static_cast<size_t>(config_.vocab);
    host_logits_.resize(static_cast<size_t>(count) * vocab);
    check(cudaMemcpyAsync(host_logits_.data(), room_.logits.data(), host_logits_.size() * sizeof(float),
                          cudaMemcpyDeviceToHost, stream_),
          "logits");
    check(cudaStreamSynchronize(stream_), "logits");
    if (!logits.empty())
      std::copy(host_logits_.begin(), host_logits_.end(), logits.begin() + first * config_.vocab);
    const auto picks = std::span(batch.picks).subspan(static_cast<size_t>(first), static_cast<size_t>(count));
    for (size_t i = 0; i < picks.size(); i += 1 + static_cast<size_t>(picks[i].experts))
      if (on_host(picks[i]))
        flight.picked[static_cast<size_t>(first) + i] =
            pick_next(picks.subspan(i), batch.allowed, host_logits_.data() + i * vocab, vocab, vocab);
  }

  ModelConfig config_;
  DeviceWeights weights_;
  int device_;
  bool reproducible_, graphs_wanted_;
  int64_t* replayed_;
  std::string name_;
  int32_t multiprocessors_ = 0;
  HeadLayout layout_{};
  cudaStream_t stream_ = nullptr;
  std::optional<Products> products_;
  int32_t pages_ = 0, page_size_ = 0;
  DeviceMemory<f16> pool_;  ///< [layers][keys, values][kv_heads][slots][padded_dim]

  std::array<Flight, 2> flights_;  ///< a ring
  size_t oldest_ = 0, in_flight_ = 0;

  DeviceMemory<std::byte> inputs_;  ///< the arrays of a step, one step after the other

  LayerGraphs graphs_;
  bool replays_ = false;  ///< whether this model's steps can be replayed

  // Of the step being launched.
  int64_t attention_at_ = 0;
  int32_t rows_ = 0;
  int32_t layers_to_run_ = 0;
  Staging* staging_ = nullptr;
  int64_t tokens_ = 0, positions_ = 0, kv_slots_ = 0, pick_rows_ = 0, greedy_ = 0, allowed_ = 0, experts_ = 0,
          groups_ = 0;  ///< offsets in it
  std::optional<AttentionPlanner> planner_;
  AttentionPlan plan_;
  AttentionInputs attention_{};
  std::vector<int32_t> picked_rows_;
  std::vector<GreedyPick> greedy_picks_;
  std::vector<ExpertPick> expert_picks_;
  std::vector<ExpertGroup> expert_groups_;
  std::vector<float> host_logits_;
  Activations room_;

  StageClock* clock_ = nullptr;  ///< of the step being launched
  int64_t steps_ = 0;
  std::array<double, kStageNames.size()> stage_seconds_{};  ///< of the steps timed in detail
  double detailed_seconds_ = 0, device_seconds_ = 0;        ///< of those steps, and of all
};

}  // namespace

BackendNeeds cuda_needs(const ModelConfig& config) {
  return {
      int64_t{2} * config.layers * config.kv_heads * padded_head_dim(config.head_dim) * int64_t{sizeof(f16)},
      8192};
}

std::unique_ptr<Backend> make_cuda_backend(const Model& model, const CudaOptions& options) {
  check_one_device(options.device);
  check(cudaSetDevice(options.device), "choosing the device");
  check_model(model.config, options);
  const int64_t needed = weight_bytes(model), there = cuda_free_bytes(options.device);
  if (needed > there)
    refuse(
        "{}: its weights take {:.1f} GB and cuda:{} has {:.1f} GB free; use engine.device: cpu or a smaller "
        "model",
        model.path, static_cast<double>(needed) / 1e9, options.device, static_cast<double>(there) / 1e9);
  return std::make_unique<CudaBackend>(model.config, upload_weights(model), options);
}

std::unique_ptr<Backend> make_random_cuda_backend(const ModelConfig& config, const CudaOptions& options,
                                                  uint64_t seed) {
  check_one_device(options.device);
  check(cudaSetDevice(options.device), "choosing the device");
  check_model(config, options);
  return std::make_unique<CudaBackend>(config, random_weights(config, seed), options);
}

int64_t cuda_free_bytes(int device) {
  size_t free_bytes = 0, total = 0;
  check(cudaSetDevice(device), "choosing the device");
  check(cudaMemGetInfo(&free_bytes, &total), "asking for free memory");
  return static_cast<int64_t>(free_bytes);
}

}  // namespace sheaf
