#include "cuda/check_model.h"

#include "core/base/error.h"
#include "cuda/attention/attention.h"
#include "cuda/base/device_memory.h"
#include "cuda/gemm/gemm.h"
#include "cuda/ops/ops.h"

namespace sheaf::cuda {

void check_model(const ModelConfig& config, const CudaOptions& options) {
  const auto cannot = [](std::string what) { refuse("{}; set engine.device: cpu", what); };
  const int32_t padded = padded_head_dim(config.head_dim), group = config.heads / config.kv_heads;
  const int32_t most = options.reproducible ? kSmallBlock : kLargeBlock;
  if (config.head_dim % 2 != 0)
    cannot(fmt::format("heads of {} are odd, which the CUDA engine does not support", config.head_dim));
  if (group > most)
    cannot(fmt::format("{} query heads per key/value head are more than the CUDA engine supports{} ({})",
                       group, options.reproducible ? " with engine.reproducible" : "", most));
  if (config.ffn % 8 != 0) cannot(fmt::format("an MLP of width {} is not a multiple of 8", config.ffn));
  if (config.hidden > kMostHidden)
    cannot(fmt::format("a hidden size of {} is more than the CUDA engine supports ({})", config.hidden,
                       kMostHidden));
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
