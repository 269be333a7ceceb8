#include "cuda/loaded_model.h"

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

LoadedModel::LoadedModel(ModelConfig the_config, DeviceWeights the_weights, ProductKernels kernels)
    : config(std::move(the_config)),
      weights(std::move(the_weights)),
      fp8(!weights.layers.empty() && weights.layers.front().qkv.narrow.size() > 0),
      layout(head_layout(config)),
      products(kernels) {
  products.set_stream(stream.get());
}

}  // namespace sheaf::cuda
