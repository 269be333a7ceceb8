#include "cuda/attention/attention_kernel.h"
#include "cuda/attention/documents.h"

namespace sheaf::cuda {
namespace {

template <int D>
void launch_documents(const AttentionInputs& in, const AttentionInputs* on_device, const HeadLayout& layout,
                      const AttentionTensors& tensors, const DocumentBlocks& documents, cudaStream_t stream) {
  launch_all<D, false>(in, documents.items, documents.small_items, documents.large_items, layout, tensors,
                       stream, 1 / documents.temperature);
  const DocumentPartials partials{documents.first_partial, documents.scale};
  tensors.sinks ? launch_merge<D, true>(in, on_device, layout, tensors, stream, partials)
                : launch_merge<D, false>(in, on_device, layout, tensors, stream, partials);
}

}  // namespace

void attend_with_documents(const AttentionInputs& inputs, const AttentionInputs* on_device,
                           const HeadLayout& layout, const AttentionTensors& tensors,
                           const DocumentBlocks& documents, cudaStream_t stream) {
  AttentionInputs others = inputs;
  others.merged_count = 0;  // all partial results are merged together below
  if (others.small_items + others.large_items > 0) attend(others, on_device, layout, tensors, stream);
  for_heads(layout.padded_dim, [&](auto dim) {
    launch_documents<decltype(dim)::value>(inputs, on_device, layout, tensors, documents, stream);
  });
}

}  // namespace sheaf::cuda
