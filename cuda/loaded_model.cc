#include "cuda/loaded_model.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/base/error.h"

namespace sheaf::cuda {
namespace {

constexpr size_t kMostWindows = 20;  // Step::attention_kinds() has three bits for each

/// As the kernels take it; the pool's slots are not known yet.
HeadLayout head_layout(const ModelConfig& config) {
  HeadLayout layout{};
  layout.heads = config.heads;
  layout.kv_heads = config.kv_heads;
  layout.head_dim = config.head_dim;
  layout.padded_dim = padded_head_dim(config.head_dim);
  layout.rotary_dim = config.rotary_dim;
  layout.norm = static_cast<int32_t>(config.qk_norm);
  layout.eps = config.norm_eps;
  const double scale = config.score_scale > 0 ? static_cast<double>(config.score_scale)
                                              : 1 / std::sqrt(static_cast<double>(config.head_dim));
  layout.query_scale = static_cast<float>(1.4426950408889634 * scale);
  layout.score_cap = static_cast<float>(1.4426950408889634 * static_cast<double>(config.score_cap));
  return layout;
}

/// A window as long as the context hides nothing.
int32_t window_in(const ModelConfig& config, const LayerConfig& layer) {
  return layer.window < config.context ? layer.window : 0;
}

std::vector<int32_t> windows_of(const ModelConfig& config) {
  std::vector<int32_t> windows;
  for (const LayerConfig& layer : config.layers)
    if (std::ranges::find(windows, window_in(config, layer)) == windows.end())
      windows.push_back(window_in(config, layer));
  return windows;
}

void check_experts(const ModelConfig& config, const CudaOptions& options) {
  const Experts& experts = config.experts;
  if (experts.count == 0) return;
  if (experts.count > kMostExperts || experts.per_token > kMostChoices)
    refuse(
        "{} experts, {} for each token, are more than the CUDA engine supports ({} and {}); set "
        "engine.device: cpu",
        experts.count, experts.per_token, kMostExperts, kMostChoices);
  for (const int32_t size : {config.hidden, experts.ffn})
    if (size % 8 != 0)
      refuse("experts of {} x {} need sizes that are multiples of 8; set engine.device: cpu", experts.ffn,
             config.hidden);
  if (!options.fp8) return;
  for (const int32_t size : {experts.ffn, experts.shared_ffn})
    if (size % 16 != 0)
      refuse("model.dtype: fp8 needs sizes that are multiples of 16, but experts have {}; use bf16", size);
  if (experts.ffn > kMostGated)
    refuse("model.dtype: fp8 works with experts of up to {} wide, but these have {}; use bf16", kMostGated,
           experts.ffn);
}

}  // namespace

LoadedModel::LoadedModel(ModelConfig the_config, DeviceWeights the_weights, bool in_fp8,
                         ProductKernels kernels)
    : config(std::move(the_config)),
      windows(windows_of(config)),
      weights(std::move(the_weights)),
      fp8(in_fp8),
      layout(head_layout(config)),
      products(kernels, config.activation) {
  products.set_stream(stream.get());
  int64_t most = 0, most8 = 0;
  const auto needs = [&](const DeviceMatrix& matrix, int64_t values, bool narrow) {
    if (matrix.packed.empty()) return;
    int64_t& room_for = narrow ? most8 : most;
    room_for = std::max(room_for, values);
  };
  for (const DeviceLayer& layer : weights.layers) {
    for (const DeviceMatrix* matrix : layer.matrices()) needs(*matrix, matrix->values(), fp8);
    for (const DeviceMatrix* matrix : layer.experts.matrices())
      needs(*matrix, expanded_values(matrix->values(), config.experts.count), layer.experts.narrow);
  }
  expanded.grow(most);
  expanded8.grow(most8);
}

size_t LoadedModel::window_of(int32_t layer) const {
  const int32_t own = window_in(config, config.layers[static_cast<size_t>(layer)]);
  return static_cast<size_t>(std::ranges::find(windows, own) - windows.begin());
}

const bf16* LoadedModel::bf16_weight(const DeviceMatrix& matrix) const {
  if (matrix.packed.empty()) return matrix.wide.data();
  for (const PackedPart& part : matrix.packed)
    expand_rows(part.rows, part.place, expanded.data(), stream.get());
  return expanded.data();
}

Fp8Weight LoadedModel::fp8_weight(const DeviceMatrix& matrix) const {
  if (matrix.packed.empty()) return matrix.fp8();
  for (const PackedPart& part : matrix.packed)
    expand_rows(part.rows, part.place, matrix.peaks.data(), expanded8.data(), stream.get());
  return {expanded8.data(), matrix.scales.data()};
}

int32_t LoadedModel::experts_at_once(const DeviceMatrix& matrix) const {
  const int32_t count = config.experts.count;
  if (matrix.packed.empty()) return count;
  const int64_t values = matrix.scales.size() > 0 ? expanded8.size() : expanded.size();
  return static_cast<int32_t>(std::min<int64_t>(count, values / (matrix.values() / count)));
}

const bf16* LoadedModel::bf16_weight(const DeviceMatrix& matrix, const ExpertRange& range,
                                     const int32_t* offsets) const {
  const int32_t count = config.experts.count;
  if (matrix.packed.empty()) return matrix.wide.data() + matrix.wide.size() / count * range.first;
  for (const PackedPart& part : matrix.packed) {
    const ExpertRows rows{offsets + range.first, part.rows.rows / count};
    expand_experts(part.rows.from(rows.each * range.first, rows.each * range.count), rows, part.place,
                   expanded.data(), stream.get());
  }
  return expanded.data();
}

Fp8Weight LoadedModel::fp8_weight(const DeviceMatrix& matrix, const ExpertRange& range,
                                  const int32_t* offsets) const {
  const int32_t count = config.experts.count;
  const float* const scales = matrix.scales.data() + matrix.scales.size() / count * range.first;
  if (matrix.packed.empty())
    return {matrix.narrow.data() + matrix.narrow.size() / count * range.first, scales};
  const float* const peaks = matrix.peaks.data() + matrix.peaks.size() / count * range.first;
  for (const PackedPart& part : matrix.packed) {
    const ExpertRows rows{offsets + range.first, part.rows.rows / count};
    expand_experts(part.rows.from(rows.each * range.first, rows.each * range.count), rows, part.place, peaks,
                   expanded8.data(), stream.get());
  }
  return {expanded8.data(), scales};
}

void check_model(const ModelConfig& config, const CudaOptions& options) {
  if (const std::string field = uncomputed_field(config); !field.empty())
    refuse("the CUDA engine does not compute this model yet ({}); use --device cpu", field);
  check_experts(config, options);
  if (const size_t windows = windows_of(config).size(); windows > kMostWindows)
    refuse("{} different sliding windows are more than the CUDA engine supports ({}); set engine.device: cpu",
           windows, kMostWindows);
  const auto cannot = [](std::string what) { refuse("{}; set engine.device: cpu", what); };
  const int32_t padded = padded_head_dim(config.head_dim), group = config.heads / config.kv_heads;
  const int32_t most = options.reproducible ? kSmallBlock : kLargeBlock;
  if (config.head_dim % 2 != 0)
    cannot(fmt::format("heads of {} are odd, which the CUDA engine does not support", config.head_dim));
  if (group > most)
    cannot(fmt::format("{} query heads per key/value head are more than the CUDA engine supports{} ({})",
                       group, options.reproducible ? " with engine.reproducible" : "", most));
  for (const LayerConfig& layer : config.layers)
    if (const int32_t width = config.mlp_width(layer); width % 8 != 0)
      cannot(fmt::format("an MLP of width {} is not a multiple of 8", width));
  if (config.hidden > kMostHidden)
    cannot(fmt::format("a hidden size of {} is more than the CUDA engine supports ({})", config.hidden,
                       kMostHidden));
  if (options.fp8_keys && rotates_key_biases(config) && rotary_tables(config) > 1)
    cannot("engine.kv_dtype: fp8 does not work with biases of keys that layers rotate in different ways");
  if (options.fp8) {
    if (!hopper_fp8_products() && !ada_fp8_products())
      refuse("model.dtype: fp8 needs an Ada, Hopper or later GPU, and a program built for it; use bf16");
    const int64_t q_size = int64_t{config.heads} * config.head_dim;
    for (const int64_t size : {int64_t{config.hidden}, q_size, int64_t{config.ffn}})
      if (size % 16 != 0)
        refuse("model.dtype: fp8 needs sizes that are multiples of 16, but one is {}; use bf16", size);
  }
  int available = 0;
  check(cudaDeviceGetAttribute(&available, cudaDevAttrMaxSharedMemoryPerBlockOptin, options.device),
        "asking for the device's shared memory");
  if (attention_shared_bytes(padded) > available)
    cannot(fmt::format("heads of {} need {} kB of shared memory, but this GPU has {}", config.head_dim,
                       attention_shared_bytes(padded) / 1000, available / 1000));
}

}  // namespace sheaf::cuda

namespace sheaf {

std::string uncomputed_field(const ModelConfig& config) {
  if (config.sinks && config.score_cap > 0) return "attention sinks under a cap of scores";
  if (config.biases.gate || config.biases.up || config.biases.down || config.biases.output)
    return "biases: on gate, up, down or the output";
  const bool clamped = config.activation == Activation::clamped;
  if (config.experts.biases != clamped)
    return "biases of experts and the clamped SwiGLU, one without the other";
  for (const LayerConfig& layer : config.layers)
    if (clamped && config.mlp_width(layer) > 0) return "the clamped SwiGLU outside of experts";
  return {};
}

}  // namespace sheaf
