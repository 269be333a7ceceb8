#pragma once
#include "cuda/attention/attention.h"

namespace sheaf::cuda {

/// A step's blocks over keys of tiles that are apart: documents, which questions weigh by a temperature and a
/// scale (DocumentSoftmax). All their results are partial.
struct DocumentBlocks {
  const AttentionItem* items = nullptr;  ///< as in AttentionInputs
  int32_t small_items = 0, large_items = 0;
  int32_t first_partial = 0;  ///< partial rows from here on are of these blocks
  float temperature = 1, scale = 1;
};

/// attend() where some rows have such blocks, too. Their kernels are for any device, apart from those without
/// documents, and not to be replayed as a graph. Queries, keys and values are fp16.
void attend_with_documents(const AttentionInputs& inputs, const AttentionInputs* on_device,
                           const HeadLayout& layout, const AttentionTensors& tensors,
                           const DocumentBlocks& documents, cudaStream_t stream);

}  // namespace sheaf::cuda
