#include "cuda/cuda_backend.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <cublas_v2.h>
#include <optional>

#include "core/engine/check_batch.h"
#include "core/engine/pick.h"
#include "core/error.h"
#include "cuda/attention_plan.h"
#include "cuda/device_memory.h"
#include "cuda/device_weights.h"
#include "cuda/ops.h"

namespace sheaf {
namespace {

using namespace cuda;

constexpr int64_t kPicksAtOnce = 1024;           // rows of logits held at once
constexpr size_t kWorkspace = size_t{64} << 20;  // for cuBLAS

void check_blas(cublasStatus_t status, const char* what) {
  if (status != CUBLAS_STATUS_SUCCESS) fail("cuBLAS: {}: {}", what, cublasGetStatusString(status));
}

int32_t padded_head_dim(int32_t head_dim) {
  for (int32_t padded : {32, 64, 128, 256})
    if (head_dim <= padded) return padded;
  refuse("heads of {} are too large for the CUDA engine (at most 256); use engine.device: cpu", head_dim);
}

/// Host arrays of a step packed into one pinned block and copied at once.
class Staging {
 public:
  void clear() { used_ = 0; }
  template <class T>
  int64_t add(std::span<const T> values) {
    const int64_t at = (used_ + 15) / 16 * 16;
    const auto bytes = static_cast<int64_t>(values.size_bytes());
    if (at + bytes > host_.size()) {
      PinnedMemory<std::byte> larger(std::max(2 * (at + bytes), int64_t{1} << 20));
      if (used_ > 0) std::memcpy(larger.data(), host_.data(), static_cast<size_t>(used_));
      host_ = std::move(larger);
    }
    if (bytes > 0) std::memcpy(host_.data() + at, values.data(), static_cast<size_t>(bytes));
    used_ = at + bytes;
    return at;
  }
  void send(cudaStream_t stream) {
    device_.grow(host_.size());
    check(cudaMemcpyAsync(device_.data(), host_.data(), static_cast<size_t>(used_), cudaMemcpyHostToDevice,
                          stream),
          "sending a step");
  }
  template <class T>
  const T* at(int64_t offset) const {
    return reinterpret_cast<const T*>(device_.data() + offset);
  }

 private:
  PinnedMemory<std::byte> host_;
  DeviceMemory<std::byte> device_;
  int64_t used_ = 0;
};

class CudaBackend final : public Backend {
 public:
  CudaBackend(ModelConfig config, DeviceWeights weights, int device)
      : config_(std::move(config)), weights_(std::move(weights)), device_(device) {
    check(cudaStreamCreate(&stream_), "making a stream");
    check_blas(cublasCreate(&blas_), "start");
    check_blas(cublasSetStream(blas_, stream_), "stream");
    workspace_.grow(static_cast<int64_t>(kWorkspace));
    check_blas(cublasSetWorkspace(blas_, workspace_.data(), kWorkspace), "workspace");
    if (config_.ffn % 8 != 0)
      refuse("an MLP of width {} is not a multiple of 8; use engine.device: cpu", config_.ffn);
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
    cublasDestroy(blas_);
    cudaStreamDestroy(stream_);
  }

  const ModelConfig& config() const override { return config_; }
  std::string describe() const override { return fmt::format("{} (cuda:{}), bf16", name_, device_); }
  int64_t kv_bytes_per_token() const override { return cuda_needs(config_).kv_bytes_per_token; }
  int32_t preferred_rows() const override { return cuda_needs(config_).preferred_rows; }

  void allocate_kv(int32_t pages, int32_t page_size) override {
    if (64 % page_size != 0) fail("pages of {} tokens do not divide a block of 64 keys", page_size);
    pages_ = pages;
    page_size_ = page_size;
    layout_.slots = int64_t{pages} * page_size;
    pool_.grow(int64_t{2} * config_.layers * layer_pool());
    // Hidden values count as 0 × what lies there, which must be a number.
    check(cudaMemsetAsync(pool_.data(), 0, static_cast<size_t>(pool_.size()) * sizeof(bf16), stream_),
          "clearing the pool");
    planner_.emplace(AttentionShape{group(), page_size, 4 * multiprocessors_ / config_.kv_heads});
  }

  void step(const StepBatch& batch, std::span<Picked> picked, std::span<float> logits) override {
    check_batch(batch, config_, pages_, page_size_);
    if (batch.rows() == 0) return;
    rows_ = batch.rows();
    send(batch);
    make_room();
    rope_table(weights_.rope_freqs.data(), staging_.at<int32_t>(positions_), rows_, layout_, rope_.data(),
               stream_);
    embed(weights_.embedding.data(), staging_.at<int32_t>(tokens_), rows_, config_.hidden, x_.data(),
          stream_);
    if (config_.post_norm) round_to_bf16(x_.data(), int64_t{rows_} * config_.hidden, normed_.data(), stream_);
    for (int32_t i = 0; i < config_.layers; ++i) run_layer(i);
    pick_all(batch, picked, logits);
  }

 private:
  int64_t q_size() const { return int64_t{config_.heads} * config_.head_dim; }
  int64_t qkv_size() const { return q_size() + int64_t{2} * config_.kv_heads * config_.head_dim; }
  int32_t group() const { return config_.heads / config_.kv_heads; }
  /// Values of the keys, or of the values, of one layer.
  int64_t layer_pool() const { return int64_t{config_.kv_heads} * layout_.slots * layout_.padded_dim; }

  void send(const StepBatch& batch) {
    planner_->plan(batch, plan_);
    staging_.clear();
    tokens_ = staging_.add(std::span<const int32_t>(batch.tokens));
    positions_ = staging_.add(std::span<const int32_t>(batch.positions));
    kv_slots_ = staging_.add(std::span<const int32_t>(batch.kv_slots));
    const int64_t items = staging_.add(std::span<const AttentionItem>(plan_.items));
    const int64_t attended = staging_.add(std::span<const int32_t>(plan_.rows));
    const int64_t pages = staging_.add(std::span<const AttentionPage>(plan_.pages));
    const int64_t merged_rows = staging_.add(std::span<const int32_t>(plan_.merged_rows));
    const int64_t partial_begin = staging_.add(std::span<const int32_t>(plan_.partial_begin));
    const int64_t partials = staging_.add(std::span<const int32_t>(plan_.partials));
    std::vector<int32_t> pick_rows;
    std::vector<GreedyPick> greedy;
    for (const Pick& pick : batch.picks) {
      pick_rows.push_back(pick.row);
      greedy.push_back({pick.first_allowed, pick.allowed_count});
    }
    pick_rows_ = staging_.add(std::span<const int32_t>(pick_rows));
    greedy_ = staging_.add(std::span<const GreedyPick>(greedy));
    allowed_ = staging_.add(std::span<const int32_t>(batch.allowed));
    staging_.send(stream_);
    attention_ = {staging_.at<AttentionItem>(items),
                  plan_.small_items,
                  static_cast<int32_t>(plan_.items.size()) - plan_.small_items,
                  staging_.at<int32_t>(attended),
                  staging_.at<AttentionPage>(pages),
                  page_size_,
                  staging_.at<int32_t>(merged_rows),
                  staging_.at<int32_t>(partial_begin),
                  staging_.at<int32_t>(partials),
                  static_cast<int32_t>(plan_.merged_rows.size()),
                  plan_.partial_rows};
  }

  void make_room() {
    const int64_t rows = rows_;
    x_.grow(rows * config_.hidden);
    rope_.grow(rows * config_.rotary_dim);
    normed_.grow(rows * config_.hidden);
    if (config_.post_norm) y_.grow(rows * config_.hidden);
    qkv_.grow(rows * qkv_size());
    q_.grow(rows * config_.heads * layout_.padded_dim);
    mixed_.grow(rows * q_size());
    gate_up_.grow(rows * 2 * config_.ffn);
    mlp_.grow(rows * config_.ffn);
    partial_out_.grow(int64_t{plan_.partial_rows} * config_.heads * layout_.padded_dim);
    partial_lse_.grow(int64_t{plan_.partial_rows} * config_.heads);
  }

  /// out [rows, n] = in [rows, k] × weight [n, k]ᵀ, added to what is there when `add`.
  template <class Out>
  void multiply(const bf16* weight, const bf16* in, int64_t rows, int64_t n, int64_t k, Out* out,
                bool add = false) {
    const float one = 1, beta = add ? 1 : 0;
    const cudaDataType_t type = sizeof(Out) == 4 ? CUDA_R_32F : CUDA_R_16BF;
    check_blas(cublasGemmEx(blas_, CUBLAS_OP_T, CUBLAS_OP_N, static_cast<int>(n), static_cast<int>(rows),
                            static_cast<int>(k), &one, weight, CUDA_R_16BF, static_cast<int>(k), in,
                            CUDA_R_16BF, static_cast<int>(k), &beta, out, type, static_cast<int>(n),
                            CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT),
               "matrix product");
  }

  void run_layer(int32_t index) {
    const DeviceLayer& layer = weights_.layers[static_cast<size_t>(index)];
    const bool post = config_.post_norm;
    const float eps = config_.norm_eps;
    const int32_t hidden = config_.hidden;
    bf16* keys = pool_.data() + int64_t{2} * index * layer_pool();
    bf16* values = keys + layer_pool();
    float* result = post ? y_.data() : x_.data();

    if (!post)
      rms_norm(x_.data(), nullptr, layer.attention_norm.data(), rows_, hidden, eps, normed_.data(), stream_);
    multiply(layer.qkv.data(), normed_.data(), rows_, qkv_size(), hidden, qkv_.data());
    place_heads(qkv_.data(), layer.qkv_bias.data(), layer.q_norm.data(), layer.k_norm.data(), rope_.data(),
                staging_.at<int32_t>(kv_slots_), rows_, layout_, q_.data(), keys, values, stream_);
    attend(attention_, layout_,
           {q_.data(), keys, values, partial_out_.data(), partial_lse_.data(), mixed_.data()}, stream_);
    multiply(layer.o.data(), mixed_.data(), rows_, hidden, q_size(), result, !post);
    if (post)
      add_rms_norm(y_.data(), layer.attention_norm.data(), rows_, hidden, eps, x_.data(), normed_.data(),
                   stream_);
    else
      rms_norm(x_.data(), nullptr, layer.mlp_norm.data(), rows_, hidden, eps, normed_.data(), stream_);
    multiply(layer.gate_up.data(), normed_.data(), rows_, int64_t{2} * config_.ffn, hidden, gate_up_.data());
    gated_silu(gate_up_.data(), rows_, config_.ffn, mlp_.data(), stream_);
    multiply(layer.down.data(), mlp_.data(), rows_, hidden, config_.ffn, result, !post);
    if (post)
      add_rms_norm(y_.data(), layer.mlp_norm.data(), rows_, hidden, eps, x_.data(), normed_.data(), stream_);
  }

  void pick_all(const StepBatch& batch, std::span<Picked> picked, std::span<float> logits) {
    const auto picks = static_cast<int64_t>(batch.picks.size());
    const int64_t vocab = config_.vocab;
    const bool sampled = std::any_of(batch.picks.begin(), batch.picks.end(),
                                     [](const Pick& pick) { return pick.temperature > 0; });
    logits_.grow(std::min(picks, kPicksAtOnce) * vocab);
    results_.grow(picks);
    chosen_.grow(picks);
    std::vector<float> host;
    for (int64_t first = 0; first < picks; first += kPicksAtOnce) {
      const int64_t count = std::min(kPicksAtOnce, picks - first);
      // The rows are done with, so the buffer of normed rows is free for the picked ones.
      rms_norm(x_.data(), staging_.at<int32_t>(pick_rows_) + first, weights_.final_norm.data(),
               static_cast<int32_t>(count), config_.hidden, config_.norm_eps, normed_.data(), stream_);
      multiply(weights_.output_or_embedding(), normed_.data(), count, vocab, config_.hidden, logits_.data());
      pick_greedy(logits_.data(), staging_.at<GreedyPick>(greedy_) + first, staging_.at<int32_t>(allowed_),
                  static_cast<int32_t>(count), config_.vocab, results_.data() + first, stream_);
      if (!sampled && logits.empty()) continue;
      host.resize(static_cast<size_t>(count * vocab));
      check(cudaMemcpyAsync(host.data(), logits_.data(), host.size() * sizeof(float), cudaMemcpyDeviceToHost,
                            stream_),
            "logits");
      check(cudaStreamSynchronize(stream_), "logits");
      if (!logits.empty()) std::copy(host.begin(), host.end(), logits.begin() + first * vocab);
      for (int64_t i = 0; i < count; ++i) {
        const Pick& pick = batch.picks[static_cast<size_t>(first + i)];
        if (pick.temperature > 0)
          picked[static_cast<size_t>(first + i)] = pick_token(
              std::span(host).subspan(static_cast<size_t>(i * vocab), static_cast<size_t>(vocab)), pick,
              std::span(batch.allowed)
                  .subspan(static_cast<size_t>(pick.first_allowed), static_cast<size_t>(pick.allowed_count)));
      }
    }
    if (picks > 0)
      check(
          cudaMemcpyAsync(chosen_.data(), results_.data(), static_cast<size_t>(picks) * sizeof(GreedyResult),
                          cudaMemcpyDeviceToHost, stream_),
          "picked tokens");
    check(cudaStreamSynchronize(stream_), "a step");
    check(cudaGetLastError(), "a step");
    for (int64_t i = 0; i < picks; ++i)
      if (batch.picks[static_cast<size_t>(i)].temperature <= 0)
        picked[static_cast<size_t>(i)] = {chosen_.data()[i].token, chosen_.data()[i].logprob};
  }

  ModelConfig config_;
  DeviceWeights weights_;
  int device_;
  std::string name_;
  int32_t multiprocessors_ = 0;
  HeadLayout layout_{};
  cudaStream_t stream_ = nullptr;
  cublasHandle_t blas_ = nullptr;
  DeviceMemory<std::byte> workspace_;
  int32_t pages_ = 0, page_size_ = 0;
  DeviceMemory<bf16> pool_;  ///< [layers][keys, values][kv_heads][slots][padded_dim]

  int32_t rows_ = 0;
  Staging staging_;
  int64_t tokens_ = 0, positions_ = 0, kv_slots_ = 0, pick_rows_ = 0, greedy_ = 0,
          allowed_ = 0;  ///< offsets in it
  std::optional<AttentionPlanner> planner_;
  AttentionPlan plan_;
  AttentionInputs attention_{};
  DeviceMemory<float> x_;       ///< [rows, hidden], the residual stream
  DeviceMemory<float> rope_;    ///< [rows, rotary_dim], cosines then sines
  DeviceMemory<float> y_;       ///< [rows, hidden], post-norm families only
  DeviceMemory<bf16> normed_;   ///< [rows, hidden]
  DeviceMemory<bf16> qkv_;      ///< [rows, (heads + 2 kv_heads) × head_dim]
  DeviceMemory<bf16> q_;        ///< [rows, heads, padded_dim]
  DeviceMemory<bf16> mixed_;    ///< [rows, heads × head_dim]
  DeviceMemory<bf16> gate_up_;  ///< [rows, 2 ffn]
  DeviceMemory<bf16> mlp_;      ///< [rows, ffn]
  DeviceMemory<float> partial_out_, partial_lse_;
  DeviceMemory<float> logits_;  ///< [picks at once, vocab]
  DeviceMemory<GreedyResult> results_;
  PinnedMemory<GreedyResult> chosen_;
};

}  // namespace

BackendNeeds cuda_needs(const ModelConfig& config) {
  return {
      int64_t{2} * config.layers * config.kv_heads * padded_head_dim(config.head_dim) * int64_t{sizeof(bf16)},
      8192};
}

std::unique_ptr<Backend> make_cuda_backend(const Model& model, int device) {
  check(cudaSetDevice(device), "choosing the device");
  return std::make_unique<CudaBackend>(model.config, upload_weights(model), device);
}

std::unique_ptr<Backend> make_random_cuda_backend(const ModelConfig& config, int device, uint64_t seed) {
  check(cudaSetDevice(device), "choosing the device");
  return std::make_unique<CudaBackend>(config, random_weights(config, seed), device);
}

int64_t cuda_free_bytes(int device) {
  size_t free_bytes = 0, total = 0;
  check(cudaSetDevice(device), "choosing the device");
  check(cudaMemGetInfo(&free_bytes, &total), "asking for free memory");
  return static_cast<int64_t>(free_bytes);
}

}  // namespace sheaf
