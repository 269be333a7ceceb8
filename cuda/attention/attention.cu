#include "cuda/attention/attention_kernel.h"

namespace sheaf::cuda {

int attention_shared_bytes(int32_t padded_dim) {
  return (kLargeBlock + 4 * kKeys) * padded_dim * static_cast<int>(sizeof(f16));
}

void attend(const AttentionInputs& inputs, const AttentionInputs* on_device, const HeadLayout& layout,
            const AttentionTensors& tensors, cudaStream_t stream) {
  tensors.sinks ? attend_with_sinks(inputs, on_device, layout, tensors, stream)
                : attend_as<false>(inputs, on_device, layout, tensors, stream);
}

}  // namespace sheaf::cuda
