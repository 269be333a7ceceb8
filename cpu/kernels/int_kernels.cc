#include "cpu/kernels/int_kernels.h"

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

constexpr int64_t kChunk = IntKernels::kChunk;
using FloatChunk __attribute__((vector_size(4 * kChunk))) = float;
using IntChunk __attribute__((vector_size(4 * kChunk))) = int32_t;
using ByteChunk __attribute__((vector_size(kChunk))) = int8_t;

/// The first chunk of `count` values, zeros where there are fewer.
[[gnu::always_inline]] inline FloatChunk load_chunk(const float* x, int64_t count) {
  FloatChunk chunk{};
  if (count >= kChunk)
    std::memcpy(&chunk, x, sizeof chunk);
  else
    std::memcpy(&chunk, x, static_cast<size_t>(count) * sizeof(float));
  return chunk;
}

/// The largest magnitude. As bits, a NaN is larger than infinity, and infinity larger than all numbers.
float largest(const float* x, int64_t count) {
  IntChunk top{};
  for (int64_t first = 0; first < count; first += kChunk) {
    const IntChunk bits = std::bit_cast<IntChunk>(load_chunk(x + first, count - first)) & 0x7fffffff;
    top = bits > top ? bits : top;
  }
  int32_t most = 0;
  for (int64_t i = 0; i < kChunk; ++i) most = top[i] > most ? top[i] : most;
  return std::bit_cast<float>(most);
}

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
  const float top = largest(x, inputs);
  const float levels = planes == 1 ? 127.0f : 127.0f * 256;
  const float scale = top / levels;
  const float inverse = scale > 0 && std::isfinite(levels / top) ? levels / top : 0.0f;
  int8_t* to = out + index * step;
  const auto write = [&](IntChunk whole) {
    const ByteChunk bytes = __builtin_convertvector(whole ^ flip, ByteChunk);
    int8_t plain[kChunk];
    std::memcpy(plain, &bytes, kChunk);
    if (step == 8)
      for (int64_t i = 0; i < kChunk; i += 8, to += together * 8) std::memcpy(to, plain + i, 8);
    else
      for (int64_t i = 0; i < kChunk; i += 4, to += together * 4) std::memcpy(to, plain + i, 4);
  };
  for (int64_t first = 0; first < inputs; first += kChunk) {
    // Adding 1.5 · 2²³ rounds to the nearest whole number, which is then in the low bits.
    const FloatChunk shifted = load_chunk(x + first, inputs - first) * inverse + 12582912.0f;
    const IntChunk whole = std::bit_cast<IntChunk>(shifted) - 0x4b400000;
    if (planes == 2) write((whole + 128) >> 8);
    write(whole);
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
