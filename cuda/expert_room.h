#pragma once
#include "core/backend/footprint.h"
#include "cuda/base/device_memory.h"
#include "cuda/base/floats.h"
#include "cuda/base/fp8_memory.h"
#include "cuda/gemm/grouped.h"
#include "cuda/gemm/grouped_hopper.h"
#include "cuda/ops/experts.h"

namespace sheaf::cuda {

static_assert(kMostGroups == kMostExperts);

/// Who multiplies a layer's experts. With Qwen3-30B-A3B's on an H200, a layer of 8,192 rows takes our kernel
/// for Hopper 1.33 ms in bf16 and 0.81 in FP8, CUTLASS's for Ampere and Ada 1.99 in bf16, and our kernel for
/// any GPU 2.65 and 3.76 (bench_experts). `wide`: some layers' experts are bf16. Ampere's takes only those.
enum class GroupedBy { hopper, ampere, any_gpu };
inline GroupedBy grouped_by(const ModelConfig& config, bool wide) {
  const Experts& experts = config.experts;
  if (grouped_hopper_products(config.hidden, experts.ffn)) return GroupedBy::hopper;
  return wide && ampere_grouped_bytes(experts.count) > 0 ? GroupedBy::ampere : GroupedBy::any_gpu;
}

/// Device memory for the rows of a step on their way through the experts of a layer; nothing in a model
/// without experts. There are per_token gathered rows for each row.
struct ExpertRoom {
  DeviceMemory<float> logits;    ///< [rows, router_rows]
  DeviceMemory<int32_t> chosen;  ///< experts, places and sources of Routes, each [gathered rows]
  DeviceMemory<float> weights;   ///< [gathered rows]
  DeviceMemory<int32_t>
      offsets;               ///< [layers, experts + 1]: of each layer until the next step, for its report
  DeviceMemory<bf16> gated;  ///< [gathered rows, ffn of an expert], of experts in bf16
  Fp8Memory gated8;          ///< [gathered rows, ffn of an expert], of experts in FP8
  DeviceMemory<bf16> given;  ///< [gathered rows, hidden]; first copied inputs, then what experts give
  DeviceMemory<float> in_scales;    ///< [gathered rows], of copied inputs in FP8
  DeviceMemory<bf16> gate_up;       ///< [gathered rows, 2 ffn of an expert], where CUTLASS computes it
  DeviceMemory<std::byte> cutlass;  ///< [bytes], room for CUTLASS's products
  int64_t layers = 0;
  GroupedBy by = GroupedBy::any_gpu;

  /// `wide`: as grouped_by() has it; FP8 models may have such layers.
  void grow(int64_t rows, const ModelConfig& config, bool fp8, bool wide) {
    const Experts& experts = config.experts;
    if (experts.count == 0) return;
    const int64_t gathered = rows * experts.per_token;
    logits.grow(rows * router_rows(experts));
    chosen.grow(3 * gathered);
    weights.grow(gathered);
    offsets.grow(config.layer_count() * (experts.count + 1));
    layers = config.layer_count();
    if (fp8) gated8.grow(gathered, experts.ffn);
    if (wide) gated.grow(gathered * experts.ffn);
    given.grow(gathered * config.hidden);
    if (fp8) in_scales.grow(gathered);
    by = grouped_by(config, wide);
    if (by != GroupedBy::ampere) return;
    cutlass.grow(ampere_grouped_bytes(experts.count));
    gate_up.grow(2 * gathered * experts.ffn);
  }
  /// Inputs in FP8, in the order of their experts.
  Fp8Rows copied8() const { return {reinterpret_cast<e4m3*>(given.data()), in_scales.data(), nullptr}; }
  /// Of the layer `index`.
  int32_t* offsets_of(int32_t index) const { return offsets.data() + index * (offsets.size() / layers); }
  Routes routes(int32_t index) const {
    const int64_t gathered = weights.size();
    return {chosen.data(), weights.data(), chosen.data() + gathered, chosen.data() + 2 * gathered,
            offsets_of(index)};
  }
};

}  // namespace sheaf::cuda
