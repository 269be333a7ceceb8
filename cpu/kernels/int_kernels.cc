#include "cpu/kernels/int_kernels.h"

#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstring>
#if defined(__aarch64__)
#include <sys/auxv.h>
#elif defined(__x86_64__)
#include <cpuid.h>
#endif

namespace sheaf {
namespace {

#if defined(__x86_64__)
/// Which g++ 12 cannot ask for by name.
bool has_avx_vnni() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  return __builtin_cpu_supports("avx2") && __get_cpuid_count(7, 1, &a, &b, &c, &d) != 0 &&
         (a & (1u << 4)) != 0;
}
#endif

}  // namespace

float quantize(const float* x, int64_t inputs, int planes, int64_t step, int64_t together, int64_t index,
               uint8_t flip, int8_t* out) {
  constexpr int64_t kChunk = IntKernels::kChunk;
  // As bits, a NaN is larger than infinity, and infinity larger than all numbers.
  uint32_t top_bits = 0;
  for (int64_t i = 0; i < inputs; ++i) {
    const uint32_t bits = std::bit_cast<uint32_t>(x[i]) & 0x7fffffffu;
    top_bits = bits > top_bits ? bits : top_bits;
  }
  const auto top = std::bit_cast<float>(top_bits);
  const float levels = planes == 1 ? 127.0f : 127.0f * 256;
  const float scale = top / levels;
  const float inverse = scale > 0 && std::isfinite(levels / top) ? levels / top : 0.0f;
  int8_t* to = out + index * step;
  for (int64_t first = 0; first < inputs; first += kChunk) {
    std::array<int32_t, kChunk> whole{};
    const int64_t count = inputs - first < kChunk ? inputs - first : kChunk;
    // Adding 1.5 · 2²³ rounds to the nearest whole number, which is then in the low bits.
    for (int64_t i = 0; i < count; ++i)
      whole[static_cast<size_t>(i)] =
          std::bit_cast<int32_t>(x[first + i] * inverse + 12582912.0f) - 0x4b400000;
    for (int plane = 0; plane < planes; ++plane) {
      std::array<int8_t, kChunk> bytes;
      for (size_t i = 0; i < kChunk; ++i)
        bytes[i] = static_cast<int8_t>((plane + 1 < planes ? (whole[i] + 128) >> 8 : whole[i]) ^ flip);
      for (size_t i = 0; i < kChunk; i += static_cast<size_t>(step), to += together * step)
        if (step == 8)
          std::memcpy(to, bytes.data() + i, 8);
        else
          std::memcpy(to, bytes.data() + i, 4);
    }
  }
  return scale;
}

const IntKernels& best_int_kernels() {
  return *all_int_kernels().back();
}

std::vector<const IntKernels*> all_int_kernels() {
  std::vector<const IntKernels*> all{&plain_int_kernels()};
#if defined(__aarch64__)
  if ((getauxval(AT_HWCAP) & HWCAP_ASIMDDP) != 0) all.push_back(&dot_int_kernels());
  if ((getauxval(AT_HWCAP2) & HWCAP2_I8MM) != 0) all.push_back(&i8mm_int_kernels());
#elif defined(__x86_64__)
  if (__builtin_cpu_supports("avx2")) all.push_back(&avx2_int_kernels());
  if (has_avx_vnni()) all.push_back(&avx_vnni_int_kernels());
  if (__builtin_cpu_supports("avx512vnni")) all.push_back(&avx512_vnni_int_kernels());
#endif
  return all;
}

}  // namespace sheaf
