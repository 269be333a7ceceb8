#pragma once
#include "cuda/attention/attention.h"

namespace sheaf::cuda {

/// The Hopper kernels for heads of D, with sinks or without. Each is compiled in a file of its own
/// (attention_hopper_64.cu, attention_hopper_64_sinks.cu and so on).
template <int D, bool kSinks = false>
struct HopperHeads {
  /// Soft caps in these heads are computed here; in others, attention.cu computes them. No model has caps and
  /// sinks.
  static constexpr bool kTakesCaps = D == 256 && !kSinks;
  /// Multiprocessors of the current device where it is Hopper and the program was built for it, else 0.
  static int multiprocessors();
  /// As attend_hopper().
  static void attend(const AttentionInputs& inputs, const AttentionInputs* on_device,
                     const HeadLayout& layout, const AttentionTensors& tensors, cudaStream_t stream);
};

}  // namespace sheaf::cuda
