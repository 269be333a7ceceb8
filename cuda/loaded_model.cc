#include "cuda/loaded_model.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "cuda/check_model.h"

namespace sheaf::cuda {
namespace {

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
  layout.rope_scale = config.rope_scale;
  layout.query_scale =
      static_cast<float>(1.4426950408889634 / std::sqrt(static_cast<double>(config.head_dim)));
  return layout;
}

}  // namespace

LoadedModel::LoadedModel(ModelConfig the_config, DeviceWeights the_weights, bool in_fp8,
                         ProductKernels kernels)
    : config(std::move(the_config)),
      weights(std::move(the_weights)),
      fp8(in_fp8),
      layout(head_layout(config)),
      products(kernels) {
  products.set_stream(stream.get());
  if (!packed()) return;
  int64_t most = 0;
  for (const DeviceLayer& layer : weights.layers)
    for (const DeviceMatrix* matrix : {&layer.qkv, &layer.o, &layer.gate_up, &layer.down})
      most = std::max(most, matrix->values());
  if (fp8)
    expanded8.grow(most);
  else
    expanded.grow(most);
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

}  // namespace sheaf::cuda
