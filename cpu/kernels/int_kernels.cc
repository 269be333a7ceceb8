#include "cpu/kernels/int_kernels.h"

#include <bit>
#include <cmath>
#include <cstddef>
#include <cstring>
#if defined(__aarch64__)
#include <sys/auxv.h>
#elif defined(__x86_64__)
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

#include "cpu/kernels/bytes.h"

namespace sheaf {
namespace {

constexpr int64_t kStretch = 16;  // what the loops take at once

/// Body(16 floats) for all of them, the last filled up with zeros.
template <class Body>
[[gnu::always_inline]] inline void each_stretch(const float* x, int64_t count, Body&& body) {
  int64_t first = 0;
  for (; first + kStretch <= count; first += kStretch) body(reinterpret_cast<const Floats*>(x + first));
  if (first == count) return;
  float rest[kStretch] = {};
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
  each_stretch(
      x, count, [&](const Floats* stretch) __attribute__((always_inline)) {
        raise(a, stretch[0]);
        raise(b, stretch[1]);
        raise(c, stretch[2]);
        raise(d, stretch[3]);
      });
  a = a > b ? a : b;
  c = c > d ? c : d;
  a = a > c ? a : c;
  int32_t most = 0;
  for (int i = 0; i < 4; ++i) most = a[i] > most ? a[i] : most;
  return std::bit_cast<float>(most);
}

/// Writes the chunks of a vector, Step bytes at a time. The layout is a copy, which no written byte can
/// change.
template <int Step>
void write_chunks(const float* x, int64_t inputs, float inverse, int planes, IntLayout layout, int8_t* to) {
  const int64_t plane_bytes = layout.chunk * layout.together;
  int64_t left = layout.chunk;  // of a chunk
  const auto write = [&](int plane, Bytes bytes) __attribute__((always_inline)) {
    bytes ^= static_cast<int8_t>(layout.flip);
    int8_t* at = to + plane * plane_bytes;
    for (int i = 0; i < kStretch; i += Step, at += layout.together * Step)
      std::memcpy(at, reinterpret_cast<const char*>(&bytes) + i, Step);
  };
  const auto go_on = [&]() __attribute__((always_inline)) {
    to += kStretch * layout.together;
    left -= kStretch;
    if (left > 0) return;
    left = layout.chunk;
    to += (planes - 1) * plane_bytes;
  };
  each_stretch(
      x, inputs, [&](const Floats* stretch) __attribute__((always_inline)) {
        const Ints a = rounded(stretch[0], inverse), b = rounded(stretch[1], inverse),
                   c = rounded(stretch[2], inverse), d = rounded(stretch[3], inverse);
        if (planes == 2) write(0, high_bytes(a, b, c, d));
        write(planes - 1, low_bytes(a, b, c, d));
        go_on();
      });
  while (left < layout.chunk) {
    for (int plane = 0; plane < planes; ++plane) write(plane, Bytes{});
    go_on();
  }
}

#if defined(__x86_64__)
/// Which g++ 12 cannot ask for by name.
bool has_avx_vnni() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  return __builtin_cpu_supports("avx2") && __get_cpuid_count(7, 1, &a, &b, &c, &d) != 0 &&
         (a & (1u << 4)) != 0;
}

/// The processor has the instructions, and the system lets this process use their registers.
bool has_amx() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  constexpr unsigned kTiles = 1u << 24, kInt8 = 1u << 25;
  if (!__builtin_cpu_supports("avx512vnni") || __get_cpuid_count(7, 0, &a, &b, &c, &d) == 0) return false;
  if ((d & kTiles) == 0 || (d & kInt8) == 0) return false;
  constexpr long kAskForRegisters = 0x1023, kTileData = 18;  // ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA
  return syscall(SYS_arch_prctl, kAskForRegisters, kTileData) == 0;
}
#endif

}  // namespace

float quantize(const float* x, int64_t inputs, int planes, const IntLayout& layout, int64_t index,
               int8_t* out) {
  const float top = largest(x, inputs);
  const float levels = planes == 1 ? 127.0f : 127.0f * 256;
  const float scale = top / levels;
  const float inverse = scale > 0 && std::isfinite(levels / top) ? levels / top : 0.0f;
  const auto run = layout.step == 8 ? write_chunks<8> : write_chunks<4>;
  run(x, inputs, inverse, planes, layout, out + index * layout.step);
  return scale;
}

const IntKernels& best_int_kernels() {
  return *all_int_kernels().back();
}

const IntKernels& best_paged_int_kernels() {
  const IntKernels* best = all_int_kernels().front();
  for (const IntKernels* kernels : all_int_kernels())
    if (kernels->panels.chunk == kPanel) best = kernels;
  return *best;
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
  static const bool amx = has_amx();
  if (amx) all.push_back(&amx_int_kernels());
#endif
  return all;
}

}  // namespace sheaf
