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

#include "cpu/kernels/bytes.h"

namespace sheaf {
namespace {

constexpr int64_t kChunk = IntKernels::kChunk;

/// Body(chunk of 16 floats) for every chunk, the last filled up with zeros.
template <class Body>
[[gnu::always_inline]] inline void each_chunk(const float* x, int64_t count, Body&& body) {
  int64_t first = 0;
  for (; first + kChunk <= count; first += kChunk) body(reinterpret_cast<const Floats*>(x + first));
  if (first == count) return;
  float rest[kChunk] = {};
  std::memcpy(rest, x + first, static_cast<size_t>(count - first) * sizeof(float));
  body(reinterpret_cast<const Floats*>(rest));
}

/// The largest magnitude. As bits, a NaN is larger than infinity, and infinity larger than all numbers.
float largest(const float* x, int64_t count) {
  Ints a{}, b{}, c{}, d{};
  const auto raise = [](Ints & top, Floats value) __attribute__((always_inline)) {
    const Ints bits = reinterpret_cast<Ints>(value) & 0x7fffffff;
    top = bits > top ? bits : top;
  };
  each_chunk(
      x, count, [&](const Floats* chunk) __attribute__((always_inline)) {
        raise(a, chunk[0]);
        raise(b, chunk[1]);
        raise(c, chunk[2]);
        raise(d, chunk[3]);
      });
  a = a > b ? a : b;
  c = c > d ? c : d;
  a = a > c ? a : c;
  int32_t most = 0;
  for (int i = 0; i < 4; ++i) most = a[i] > most ? a[i] : most;
  return std::bit_cast<float>(most);
}

/// Writes chunks of a vector, Step bytes at a time.
template <int Step>
void write_chunks(const float* x, int64_t inputs, float inverse, int planes, int64_t together, uint8_t flip,
                  int8_t* to) {
  const auto write = [&](Bytes bytes) __attribute__((always_inline)) {
    bytes ^= static_cast<int8_t>(flip);
    for (int i = 0; i < kChunk; i += Step, to += together * Step)
      std::memcpy(to, reinterpret_cast<const char*>(&bytes) + i, Step);
  };
  each_chunk(
      x, inputs, [&](const Floats* chunk) __attribute__((always_inline)) {
        const Ints a = rounded(chunk[0], inverse), b = rounded(chunk[1], inverse),
                   c = rounded(chunk[2], inverse), d = rounded(chunk[3], inverse);
        if (planes == 2) write(high_bytes(a, b, c, d));
        write(low_bytes(a, b, c, d));
      });
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
  const auto run = step == 8 ? write_chunks<8> : write_chunks<4>;
  run(x, inputs, inverse, planes, together, flip, out + index * step);
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
