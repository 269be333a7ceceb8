#pragma once
#include <arm_neon.h>
#include <cstdint>

#include "cpu/kernels/unroll.h"

/// The loop of a tile of three pairs of rows over its depth, in assembler. A Neoverse-V1 starts four SMMLAs a
/// cycle, but only six instructions in all (measured), so there may be one other for two SMMLAs, and loads
/// must come well before their use: 3.7 SMMLAs a cycle with one plane, 3.8 with two. Of intrinsics, g++ 12
/// makes 3.4 and 3.3. Loading the next vectors while the last are multiplied takes more instructions and
/// gains nothing.
namespace sheaf {
namespace {

/// What a tile goes over. In memory, because an asm statement has too few operands.
struct TileDepth {
  const int8_t* a;
  const int8_t* b;
  const int8_t* fetched;  ///< for a later tile, fetch_step bytes further with each chunk
  int64_t pair_bytes;
  int64_t chunk_stride;
  int64_t chunks;
  int64_t fetch_step;
};

// Registers: sums where the compiler wants them, rows v24 … v26, columns v27 … v30.
#define LOAD(to, base, offset) "ldr q" #to ", [x" #base ", #" #offset "]\n"
#define LOAD_ROWS(offset) LOAD(24, 9, offset) LOAD(25, 12, offset) LOAD(26, 16, offset)
#define ADD(sum, row, column) "smmla %[s" #sum "].4s, v" #row ".16b, v" #column ".16b\n"
#define CLEAR(sum) "movi %[s" #sum "].4s, #0\n"
#define CLEAR_4(sum0, sum1, sum2, sum3) CLEAR(sum0) CLEAR(sum1) CLEAR(sum2) CLEAR(sum3)
#define ADD_3(sum0, sum1, sum2, column) ADD(sum0, 24, column) ADD(sum1, 25, column) ADD(sum2, 26, column)
#define ADD_4(sum0, sum1, sum2, sum3, row) \
  ADD(sum0, row, 27) ADD(sum1, row, 28) ADD(sum2, row, 29) ADD(sum3, row, 30)

// clang-format off
/// Eight inputs of one plane: rows at `r`, columns at c0 … c7 from x`b`.
#define STEP_OF_ONE(r, b, c0, c1, c2, c3, c4, c5, c6, c7)                     \
  LOAD_ROWS(r) LOAD(27, b, c0) LOAD(28, b, c1) LOAD(29, b, c2) LOAD(30, b, c3) \
  ADD_3(0, 8, 16, 27) LOAD(27, b, c4)                                          \
  ADD_3(1, 9, 17, 28) LOAD(28, b, c5)                                          \
  ADD_3(2, 10, 18, 29) LOAD(29, b, c6)                                         \
  ADD_3(3, 11, 19, 30) LOAD(30, b, c7)                                         \
  ADD_3(4, 12, 20, 27) ADD_3(5, 13, 21, 28) ADD_3(6, 14, 22, 29) ADD_3(7, 15, 23, 30)
#define CHUNK_OF_ONE(r0, r1, b)                              \
  STEP_OF_ONE(r0, b, 0, 16, 32, 48, 64, 80, 96, 112)         \
  STEP_OF_ONE(r1, b, 128, 144, 160, 176, 192, 208, 224, 240)

/// Eight inputs of two planes: rows at `r` and their low bytes at `l`, columns at c0 … c3, their low bytes at
/// d0 … d3.
#define STEP_OF_TWO(r, l, b, c0, c1, c2, c3, d0, d1, d2, d3)                   \
  LOAD_ROWS(r) LOAD(27, b, c0) LOAD(28, b, c1) LOAD(29, b, c2) LOAD(30, b, c3) \
  ADD_3(0, 4, 8, 27) ADD_3(1, 5, 9, 28) ADD_3(2, 6, 10, 29) ADD_3(3, 7, 11, 30) \
  LOAD(31, 9, l) ADD_4(12, 13, 14, 15, 31)                                     \
  LOAD(31, 12, l) ADD_4(16, 17, 18, 19, 31)                                    \
  LOAD(31, 16, l) ADD_4(20, 21, 22, 23, 31)                                    \
  LOAD(27, b, d0) ADD_3(12, 16, 20, 27)                                        \
  LOAD(28, b, d1) ADD_3(13, 17, 21, 28)                                        \
  LOAD(29, b, d2) ADD_3(14, 18, 22, 29)                                        \
  LOAD(30, b, d3) ADD_3(15, 19, 23, 30)
#define CHUNK_OF_TWO(r0, r1, l0, l1, b)                                     \
  STEP_OF_TWO(r0, l0, b, 0, 16, 32, 48, 256, 272, 288, 304)                 \
  STEP_OF_TWO(r1, l1, b, 128, 144, 160, 176, 384, 400, 416, 432)

/// Two chunks at a time, then the one that may be left. x9, x12, x16: the rows of a pair; x10, x17: columns
/// of two chunks.
#define ALL_CHUNKS(first, second, two_chunks)                                 \
  CLEAR_4(0, 1, 2, 3) CLEAR_4(4, 5, 6, 7) CLEAR_4(8, 9, 10, 11)               \
  CLEAR_4(12, 13, 14, 15) CLEAR_4(16, 17, 18, 19) CLEAR_4(20, 21, 22, 23)     \
  "ldp x9, x10, [%[depth]]\n"                                                 \
  "ldp x11, x8, [%[depth], #16]\n"                                            \
  "ldp x13, x14, [%[depth], #32]\n"                                           \
  "ldr x15, [%[depth], #48]\n"                                                \
  "add x12, x9, x8\n"                                                         \
  "add x16, x12, x8\n"                                                        \
  "add x17, x10, x13\n"                                                       \
  "subs x14, x14, #2\n"                                                       \
  "b.lt 2f\n"                                                                 \
  "1:\n"                                                                      \
  first                                                                       \
  "prfm pldl1keep, [x11]\n"                                                   \
  "add x10, x10, x13, lsl #1\n"                                               \
  second                                                                      \
  "prfm pldl1keep, [x11, x15]\n"                                              \
  "add x9, x9, " two_chunks "\n"                                              \
  "add x12, x12, " two_chunks "\n"                                            \
  "add x16, x16, " two_chunks "\n"                                            \
  "add x17, x17, x13, lsl #1\n"                                               \
  "add x11, x11, x15, lsl #1\n"                                               \
  "subs x14, x14, #2\n"                                                       \
  "b.ge 1b\n"                                                                 \
  "2:\n"                                                                      \
  "tbz x14, #0, 3f\n"                                                         \
  first                                                                       \
  "3:\n"
// clang-format on

/// Sums of pair p and columns 2c, 2c + 1: of one plane in 8p + c; of two, the high ones in 4p + c, the low
/// ones in 12 + 4p + c.
template <int Planes>
[[gnu::always_inline]] inline void multiply_three_pairs(const TileDepth& depth, int32x4_t (&sums)[24]) {
  int32x4_t s0, s1, s2, s3, s4, s5, s6, s7, s8, s9, s10, s11, s12, s13, s14, s15, s16, s17, s18, s19, s20,
      s21, s22, s23;
#define ALL_OPERANDS                                                                                                                                                                                                                                                                                                                                                                                                           \
  : [s0] "=&w"(s0), [s1] "=&w"(s1), [s2] "=&w"(s2), [s3] "=&w"(s3), [s4] "=&w"(s4), [s5] "=&w"(s5), [s6] "=&w"(s6), [s7] "=&w"(s7), [s8] "=&w"(s8), [s9] "=&w"(s9), [s10] "=&w"(s10), [s11] "=&w"(s11), [s12] "=&w"(s12), [s13] "=&w"(s13), [s14] "=&w"(s14), [s15] "=&w"(s15), [s16] "=&w"(s16), [s17] "=&w"(s17), [s18] "=&w"(s18), [s19] "=&w"(s19), [s20] "=&w"(s20), [s21] "=&w"(s21), [s22] "=&w"(s22), [s23] "=&w"(s23) \
  : [depth] "r"(&depth) \
  : "x8", "x9", "x10", "x11", "x12", "x13", "x14", "x15", "x16", "x17", "v24", "v25", "v26", "v27", "v28", \
    "v29", "v30", "v31", "cc", "memory"
  if constexpr (Planes == 1)
    asm volatile(ALL_CHUNKS(CHUNK_OF_ONE(0, 16, 10), CHUNK_OF_ONE(32, 48, 17), "#64") ALL_OPERANDS);
  else
    asm volatile(ALL_CHUNKS(CHUNK_OF_TWO(0, 16, 32, 48, 10), CHUNK_OF_TWO(64, 80, 96, 112, 17), "#128")
                     ALL_OPERANDS);
  const int32x4_t all[] = {s0,  s1,  s2,  s3,  s4,  s5,  s6,  s7,  s8,  s9,  s10, s11,
                           s12, s13, s14, s15, s16, s17, s18, s19, s20, s21, s22, s23};
  unroll<24>([&](auto i) __attribute__((always_inline)) { sums[i] = all[i]; });
}

#undef LOAD
#undef LOAD_ROWS
#undef ADD
#undef CLEAR
#undef CLEAR_4
#undef ADD_3
#undef ADD_4
#undef STEP_OF_ONE
#undef STEP_OF_TWO
#undef CHUNK_OF_ONE
#undef CHUNK_OF_TWO
#undef ALL_CHUNKS
#undef ALL_OPERANDS

}  // namespace
}  // namespace sheaf
