#pragma once
#include "cuda/attention/attention.h"

namespace sheaf::cuda {

/// The blocks of a step that read documents: tiles with AttentionTile::apart, whose scores have the
/// temperature and scale of DocumentSoftmax. All their results are partial.
struct DocumentBlocks {
  const AttentionItem* items = nullptr;  ///< as in AttentionInputs
  int32_t small_items = 0, large_items = 0;
  int32_t first_partial = 0;  ///< partial rows from here on are of these blocks
  float temperature = 1, scale = 1;
};

/// attend() for a step that has document blocks. Documents have kernels of their own, which run on any device
/// and are not captured in a graph. Queries, keys and values are fp16.
void attend_with_documents(const AttentionInputs& inputs, const AttentionInputs* on_device,
                           const HeadLayout& layout, const AttentionTensors& tensors,
                           const DocumentBlocks& documents, cudaStream_t stream);

}  // namespace sheaf::cuda
