#pragma once
#include "core/backend/footprint.h"
#include "cuda/base/device_memory.h"
#include "cuda/base/floats.h"
#include "cuda/gemm/grouped.h"
#include "cuda/ops/experts.h"

namespace sheaf::cuda {

static_assert(kMostGroups == kMostExperts);

/// Device memory for the rows of a step on their way through the experts of a layer; nothing in a model
/// without experts. There are per_token gathered rows for each row.
struct ExpertRoom {
  DeviceMemory<float> logits;     ///< [rows, router_rows]
  DeviceMemory<int32_t> chosen;   ///< experts, places and sources of Routing, each [gathered rows]
  DeviceMemory<float> weights;    ///< [gathered rows]
  DeviceMemory<int32_t> offsets;  ///< [experts + 1]
  DeviceMemory<bf16> gated;       ///< [gathered rows, ffn of an expert]
  DeviceMemory<bf16>
      given;  ///< [gathered rows, hidden]; first CUTLASS's copied inputs, then what experts give
  DeviceMemory<bf16> gate_up;       ///< [gathered rows, 2 ffn of an expert], where CUTLASS computes it
  DeviceMemory<std::byte> cutlass;  ///< cutlass_grouped_bytes

  void grow(int64_t rows, const ModelConfig& config) {
    const Experts& experts = config.experts;
    if (experts.count == 0) return;
    const int64_t gathered = rows * experts.per_token;
    logits.grow(rows * router_rows(experts));
    chosen.grow(3 * gathered);
    weights.grow(gathered);
    offsets.grow(experts.count + 1);
    gated.grow(gathered * experts.ffn);
    given.grow(gathered * config.hidden);
    cutlass.grow(cutlass_grouped_bytes(experts.count));
    if (cutlass.size() > 0) gate_up.grow(2 * gathered * experts.ffn);
  }
  Routing routing() const {
    const int64_t gathered = weights.size();
    return {chosen.data(), weights.data(), chosen.data() + gathered, chosen.data() + 2 * gathered,
            offsets.data()};
  }
};

}  // namespace sheaf::cuda
