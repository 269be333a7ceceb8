// Span attention on Hopper: wgmma, and bulk copies of pages. Blocks stay on a multiprocessor and take one
// item (a block of queries and its list of pages) after the other. One warp brings keys and values, three
// bring queries, and one or two warpgroups of 64 queries each compute. While a warpgroup's softmax runs, its
// next scores and its last weighted values are in the matrix unit.
//
// Work: 4 × D FLOPs a query and key; bytes: 4 × D a key and block (e4m3: 2 × D), so 64 or 128 FLOP per byte
// read from L2.

#include "cuda/attention/hopper_heads.h"

namespace sheaf::cuda {
namespace {

template <int D>
int multiprocessors_for(const HeadLayout& layout) {
  return layout.score_cap > 0 && !HopperHeads<D>::kTakesCaps ? 0 : HopperHeads<D>::multiprocessors();
}

/// 0 where attention.cu has to do it: on other devices, and for layouts that the kernels are not made for.
int multiprocessors_for(const HeadLayout& layout, int32_t page_size) {
  if (page_size != kNarrowPage || layout.head_dim % 8 != 0) return 0;
  switch (layout.padded_dim) {
    case 64:
      return multiprocessors_for<64>(layout);
    case 128:
      return multiprocessors_for<128>(layout);
    case 256:
      return multiprocessors_for<256>(layout);
    default:
      return 0;
  }
}

}  // namespace

bool hopper_attention(const HeadLayout& layout, int32_t page_size) {
  return multiprocessors_for(layout, page_size) > 0;
}

bool rounds_to_fp8(const HeadLayout& layout, int32_t page_size) {
  return layout.head_dim == kFp8Block && hopper_attention(layout, page_size);
}

bool attend_hopper(const AttentionInputs& inputs, const AttentionInputs* on_device, const HeadLayout& layout,
                   const AttentionTensors& tensors, cudaStream_t stream) {
  if (!hopper_attention(layout, inputs.page_size)) return false;
  const auto attend = [&](auto heads, auto with_sinks) {
    tensors.sinks ? decltype(with_sinks)::attend(inputs, on_device, layout, tensors, stream)
                  : decltype(heads)::attend(inputs, on_device, layout, tensors, stream);
  };
  if (layout.padded_dim == 64)
    attend(HopperHeads<64>{}, HopperHeads<64, true>{});
  else if (layout.padded_dim == 128)
    attend(HopperHeads<128>{}, HopperHeads<128, true>{});
  else
    attend(HopperHeads<256>{}, HopperHeads<256, true>{});
  return true;
}

}  // namespace sheaf::cuda
