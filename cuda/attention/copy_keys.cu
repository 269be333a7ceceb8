#include "cuda/attention/attention.h"

namespace sheaf::cuda {
namespace {

constexpr int kBlocks = 264, kWarps = 16;

/// A warp takes a key and its value of one head after the other. `inputs` [1].
__global__ void copy_keys_kernel(const AttentionInputs* inputs, HeadLayout layout, f16* keys, f16* values) {
  const AttentionInputs& in = *inputs;
  const int chunks = layout.padded_dim / 8;  // of 16 bytes
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  for (int i = blockIdx.x * kWarps + warp; i < in.copy_count * layout.kv_heads; i += gridDim.x * kWarps) {
    const SlotCopy copy = in.copies[i / layout.kv_heads];
    const int64_t head = int64_t{i % layout.kv_heads} * layout.slots;
    for (int chunk = lane; chunk < 2 * chunks; chunk += 32) {
      auto* tensor = reinterpret_cast<uint4*>(chunk < chunks ? keys : values);
      const int at = chunk % chunks;
      tensor[(head + copy.to) * chunks + at] = tensor[(head + copy.from) * chunks + at];
    }
  }
}

}  // namespace

void copy_keys(const AttentionInputs* on_device, const HeadLayout& layout, f16* keys, f16* values,
               cudaStream_t stream) {
  copy_keys_kernel<<<kBlocks, 32 * kWarps, 0, stream>>>(on_device, layout, keys, values);
}

}  // namespace sheaf::cuda
