#include "cuda/attention/attention_kernel.h"

namespace sheaf::cuda {

void attend_with_sinks(const AttentionInputs& inputs, const AttentionInputs* on_device,
                       const HeadLayout& layout, const AttentionTensors& tensors, cudaStream_t stream) {
  attend_as<true>(inputs, on_device, layout, tensors, stream);
}

}  // namespace sheaf::cuda
