#pragma once
#include <cstdint>

namespace sheaf {

/// What weights are computed as: fp32 and whole numbers on the CPU only, bf16 and FP8 on a GPU only.
enum class Precision : uint8_t { automatic, f32, int16, int8, bf16, fp8 };
constexpr bool only_on_gpu(Precision precision) {
  return precision == Precision::bf16 || precision == Precision::fp8;
}
/// The CPU multiplies in whole numbers; in anything else it computes in fp32.
constexpr bool in_whole_numbers(Precision precision) {
  return precision == Precision::int16 || precision == Precision::int8;
}

/// What keys and values are kept as: as the engine has them, or e4m3 (GPU only).
enum class KvPrecision : uint8_t { automatic, fp8 };

/// How weights lie in a GPU's memory.
enum class WeightStorage : uint8_t { automatic, expanded, packed };

}  // namespace sheaf
