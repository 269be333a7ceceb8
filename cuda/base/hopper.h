#pragma once
// What Hopper has that CUDA C++ has no words for: barriers that count bytes, bulk copies of tiles, and matrix
// products of a warpgroup. Only for code compiled for sm_90a.
#include <cstdint>
#include <cuda.h>

#include "cuda/base/device_math.h"

namespace sheaf::cuda {

/// The warpgroup of this thread, the same in all lanes as far as the compiler knows.
__device__ inline int this_warpgroup() {
  return __shfl_sync(0xffffffffu, static_cast<int>(threadIdx.x) / 128, 0);
}

// --- barriers in shared memory

__device__ inline void barrier_init(uint64_t* barrier, uint32_t arrivals) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(shared_address(barrier)), "r"(arrivals));
}
__device__ inline void barrier_arrive(uint64_t* barrier) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(shared_address(barrier)) : "memory");
}
/// Arrives, and has the barrier wait for `bytes` of bulk copies as well.
__device__ inline void barrier_expect(uint64_t* barrier, uint32_t bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(shared_address(barrier)),
               "r"(bytes)
               : "memory");
}
/// Waits until the phase of this parity is complete.
__device__ inline void barrier_wait(uint64_t* barrier, uint32_t parity) {
  asm volatile(
      "{\n"
      ".reg .pred done;\n"
      "again:\n"
      "mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n"
      "@done bra ready;\n"
      "bra again;\n"
      "ready:\n"
      "}" ::"r"(shared_address(barrier)),
      "r"(parity)
      : "memory");
}
/// Makes barrier_init visible to the copy engine.
__device__ inline void fence_barrier_init() {
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}
/// Makes ordinary writes to shared memory visible to the matrix unit and the copy engine.
__device__ inline void fence_shared_writes() {
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

/// One of the 16 barriers of a block, among `threads` of its threads.
__device__ inline void named_sync(int id, int threads) {
  asm volatile("bar.sync %0, %1;" ::"r"(id), "r"(threads) : "memory");
}

/// A block's dynamic shared memory from its first multiple of 1,024 bytes, as swizzled tiles need it.
/// (Rounding the pointer itself would make the compiler forget which memory it is of.)
template <class Memory>
__device__ inline Memory& aligned_shared(uint8_t* bytes) {
  return *reinterpret_cast<Memory*>(bytes + (-shared_address(bytes) & 1023));
}

// --- bulk copies

/// Copies a box of a 3-dimensional tensor to shared memory; what lies outside of the tensor is zero.
__device__ inline void copy_box(void* to, const CUtensorMap* map, int32_t x, int32_t y, int32_t z,
                                uint64_t* barrier) {
  asm volatile(
      "cp.async.bulk.tensor.3d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%3, %4, "
      "%5}], [%2];" ::"r"(shared_address(to)),
      "l"(map), "r"(shared_address(barrier)), "r"(x), "r"(y), "r"(z)
      : "memory");
}
__device__ inline void copy_box(void* to, const CUtensorMap* map, int32_t x, int32_t y, uint64_t* barrier) {
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%3, "
      "%4}], "
      "[%2];" ::"r"(shared_address(to)),
      "l"(map), "r"(shared_address(barrier)), "r"(x), "r"(y)
      : "memory");
}
/// The same box to the same place of every block of the cluster in `blocks`; each one's barrier counts it.
__device__ inline void copy_box_to_all(void* to, const CUtensorMap* map, int32_t x, int32_t y,
                                       uint64_t* barrier, uint16_t blocks) {
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.multicast::cluster "
      "[%0], [%1, {%3, %4}], [%2], %5;" ::"r"(shared_address(to)),
      "l"(map), "r"(shared_address(barrier)), "r"(x), "r"(y), "h"(blocks)
      : "memory");
}
/// `bytes` bytes as they lie, a multiple of 16, both ends aligned to 16.
__device__ inline void copy_bytes(void* to, const void* from, uint32_t bytes, uint64_t* barrier) {
  asm volatile(
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(
          shared_address(to)),
      "l"(from), "r"(bytes), "r"(shared_address(barrier))
      : "memory");
}
/// From shared memory; rows and columns outside of the tensor are not written.
__device__ inline void store_box(const CUtensorMap* map, const void* from, int32_t x, int32_t y) {
  asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [%0, {%2, %3}], [%1];" ::"l"(map),
               "r"(shared_address(from)), "r"(x), "r"(y)
               : "memory");
}
/// A box from shared memory, added to what is there.
__device__ inline void add_box(const CUtensorMap* map, const void* from, int32_t x, int32_t y) {
  asm volatile(
      "cp.reduce.async.bulk.tensor.2d.global.shared::cta.add.tile.bulk_group [%0, {%2, %3}], [%1];" ::"l"(
          map),
      "r"(shared_address(from)), "r"(x), "r"(y)
      : "memory");
}
__device__ inline void stores_commit() {
  asm volatile("cp.async.bulk.commit_group;" ::: "memory");
}
/// Waits until the stores of this thread but the last `pending` groups have read their shared memory.
template <int pending = 0>
__device__ inline void stores_wait_read() {
  asm volatile("cp.async.bulk.wait_group.read %0;" ::"n"(pending) : "memory");
}
__device__ inline void stores_wait() {
  asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
}

// --- clusters

__device__ inline uint32_t cluster_rank() {
  uint32_t rank;
  asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  return rank;
}
__device__ inline void cluster_sync() {
  asm volatile("barrier.cluster.arrive.release.aligned;\nbarrier.cluster.wait.acquire.aligned;" ::: "memory");
}
/// Arrives at this barrier of another block of the cluster. (With .release.cluster every arrival would be a
/// fence of the whole device: a third of a matrix product's time.)
__device__ inline void barrier_arrive_at(uint64_t* barrier, uint32_t block) {
  asm volatile(
      "{\n"
      ".reg .b32 remote;\n"
      "mapa.shared::cluster.u32 remote, %0, %1;\n"
      "mbarrier.arrive.shared::cluster.b64 _, [remote];\n"
      "}" ::"r"(shared_address(barrier)),
      "r"(block)
      : "memory");
}

// --- registers of a warpgroup

template <int count>
__device__ inline void keep_registers() {
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(count));
}
template <int count>
__device__ inline void take_registers() {
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(count));
}

// --- matrix products of a warpgroup: d [64, N] += a [64, 16] b [16, N], fp32 out, or of e4m3, [64, 32] and
// [32, N]; attention takes fp16, the weights' products (N = 256, both in shared memory) take bf16

/// A tile in shared memory whose rows are `line` bytes, 128 or 64, swizzled as the copy engine does: see
/// swizzled(). `block_stride`: bytes to the next 64 columns, for tiles read across their rows.
template <int line = 128>
__device__ inline uint64_t tile_descriptor(const void* tile, uint32_t block_stride) {
  static_assert(line == 128 || line == 64);
  constexpr uint64_t swizzle = uint64_t{line == 128 ? 1 : 2} << 62;
  constexpr uint64_t eight_rows = uint64_t{8 * line >> 4} << 32;
  return swizzle | eight_rows | (uint64_t{block_stride >> 4} << 16) | ((shared_address(tile) & 0x3ffff) >> 4);
}
/// Where chunk `chunk` of 16 bytes lies in row `row` of such a tile.
template <int line>
__device__ constexpr int swizzled(int chunk, int row) {
  return line == 128 ? chunk ^ (row % 8) : chunk ^ (row / 2 % 4);
}
/// A tile of columns of 16 bytes, each [rows, 16] as it lies, `column_stride` bytes apart.
__device__ inline uint64_t columns_descriptor(const void* tile, uint32_t column_stride) {
  constexpr uint64_t eight_rows = uint64_t{8 * 16 >> 4} << 32;
  return eight_rows | (uint64_t{column_stride >> 4} << 16) | ((shared_address(tile) & 0x3ffff) >> 4);
}

__device__ inline void products_begin() {
  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}
__device__ inline void products_commit() {
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}
template <int pending>
__device__ inline void products_wait() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(pending) : "memory");
}
/// Keeps the compiler from moving accumulators over a wait.
template <int count>
__device__ inline void pin(float (&values)[count]) {
#pragma unroll
  for (int i = 0; i < count; ++i) asm volatile("" : "+f"(values[i])::"memory");
}

// The names of 16, 32, 64 and 128 results in PTX, and the results.
#define SHEAF_NAMES_16 "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15"
#define SHEAF_NAMES_32 \
  SHEAF_NAMES_16       \
  ", "                 \
  "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31"
#define SHEAF_NAMES_64                                                                         \
  SHEAF_NAMES_32                                                                               \
  ", "                                                                                         \
  "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, %48, %49, " \
  "%50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63"
#define SHEAF_NAMES_128                                                                        \
  SHEAF_NAMES_64                                                                               \
  ", "                                                                                         \
  "%64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79, %80, %81, " \
  "%82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95, %96, %97, %98, %99, " \
  "%100, %101, %102, %103, %104, %105, %106, %107, %108, %109, %110, %111, %112, %113, %114, " \
  "%115, %116, %117, %118, %119, %120, %121, %122, %123, %124, %125, %126, %127"
#define SHEAF_RESULTS_4(at) "+f"(d[at]), "+f"(d[at + 1]), "+f"(d[at + 2]), "+f"(d[at + 3])
#define SHEAF_RESULTS_16(at) \
  SHEAF_RESULTS_4(at), SHEAF_RESULTS_4(at + 4), SHEAF_RESULTS_4(at + 8), SHEAF_RESULTS_4(at + 12)
#define SHEAF_RESULTS_32(at) SHEAF_RESULTS_16(at), SHEAF_RESULTS_16(at + 16)
#define SHEAF_RESULTS_64(at) SHEAF_RESULTS_32(at), SHEAF_RESULTS_32(at + 32)
#define SHEAF_RESULTS_128(at) SHEAF_RESULTS_64(at), SHEAF_RESULTS_64(at + 64)
/// `inputs` and `add_name`: what a, b and add, which follow the results, are called in PTX; then a.
#define SHEAF_MULTIPLY(types, order, count, inputs, add_name, ...)                                       \
  asm volatile("{\n.reg .pred add;\nsetp.ne.b32 add, " add_name                                          \
               ", 0;\n"                                                                                  \
               "wgmma.mma_async.sync.aligned." types " {" SHEAF_NAMES_##count "}, " inputs               \
                                                                              ", add, 1, 1" order ";\n}" \
               : SHEAF_RESULTS_##count(0)                                                                \
               : __VA_ARGS__, "l"(b), "r"(static_cast<int>(add)))

/// a and b both in shared memory, both with the summed dimension along their rows.
__device__ inline void multiply_tiles(float (&d)[16], uint64_t a, uint64_t b, bool add) {
  SHEAF_MULTIPLY("m64n32k16.f32.f16.f16", ", 0, 0", 16, "%16, %17", "%18", "l"(a));
}
__device__ inline void multiply_tiles(float (&d)[32], uint64_t a, uint64_t b, bool add) {
  SHEAF_MULTIPLY("m64n64k16.f32.f16.f16", ", 0, 0", 32, "%32, %33", "%34", "l"(a));
}
__device__ inline void multiply_tiles(float (&d)[64], uint64_t a, uint64_t b, bool add) {
  SHEAF_MULTIPLY("m64n128k16.f32.f16.f16", ", 0, 0", 64, "%64, %65", "%66", "l"(a));
}
__device__ inline void multiply_tiles(float (&d)[128], uint64_t a, uint64_t b, bool add) {
  SHEAF_MULTIPLY("m64n256k16.f32.bf16.bf16", ", 0, 0", 128, "%128, %129", "%130", "l"(a));
}
/// The same of e4m3, 32 summed columns.
__device__ inline void multiply_tiles_fp8(float (&d)[32], uint64_t a, uint64_t b, bool add) {
  SHEAF_MULTIPLY("m64n64k32.f32.e4m3.e4m3", "", 32, "%32, %33", "%34", "l"(a));
}
__device__ inline void multiply_tiles_fp8(float (&d)[64], uint64_t a, uint64_t b, bool add) {
  SHEAF_MULTIPLY("m64n128k32.f32.e4m3.e4m3", "", 64, "%64, %65", "%66", "l"(a));
}
__device__ inline void multiply_tiles_fp8(float (&d)[128], uint64_t a, uint64_t b, bool add) {
  SHEAF_MULTIPLY("m64n256k32.f32.e4m3.e4m3", "", 128, "%128, %129", "%130", "l"(a));
}
/// a in registers; b in shared memory, the summed dimension across its rows.
__device__ inline void multiply_registers(float (&d)[32], const uint32_t (&a)[4], uint64_t b, bool add) {
  SHEAF_MULTIPLY("m64n64k16.f32.f16.f16", ", 1", 32, "{%32, %33, %34, %35}, %36", "%37", "r"(a[0]), "r"(a[1]),
                 "r"(a[2]), "r"(a[3]));
}
__device__ inline void multiply_registers(float (&d)[64], const uint32_t (&a)[4], uint64_t b, bool add) {
  SHEAF_MULTIPLY("m64n128k16.f32.f16.f16", ", 1", 64, "{%64, %65, %66, %67}, %68", "%69", "r"(a[0]),
                 "r"(a[1]), "r"(a[2]), "r"(a[3]));
}
/// The same of e4m3, 32 summed columns, which in b lie along its rows.
__device__ inline void multiply_registers_fp8(float (&d)[32], const uint32_t (&a)[4], uint64_t b, bool add) {
  SHEAF_MULTIPLY("m64n64k32.f32.e4m3.e4m3", "", 32, "{%32, %33, %34, %35}, %36", "%37", "r"(a[0]), "r"(a[1]),
                 "r"(a[2]), "r"(a[3]));
}
__device__ inline void multiply_registers_fp8(float (&d)[64], const uint32_t (&a)[4], uint64_t b, bool add) {
  SHEAF_MULTIPLY("m64n128k32.f32.e4m3.e4m3", "", 64, "{%64, %65, %66, %67}, %68", "%69", "r"(a[0]), "r"(a[1]),
                 "r"(a[2]), "r"(a[3]));
}
#undef SHEAF_MULTIPLY
#undef SHEAF_RESULTS_128
#undef SHEAF_RESULTS_64
#undef SHEAF_RESULTS_32
#undef SHEAF_RESULTS_16
#undef SHEAF_RESULTS_4
#undef SHEAF_NAMES_128
#undef SHEAF_NAMES_64
#undef SHEAF_NAMES_32
#undef SHEAF_NAMES_16

// --- results on their way out

/// Four 8 × 8 matrices; each lane gives the address of one row.
__device__ inline void store4(void* to, uint32_t a, uint32_t b, uint32_t c, uint32_t d) {
  asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(shared_address(to)),
               "r"(a), "r"(b), "r"(c), "r"(d)
               : "memory");
}

/// Four lanes hold four 4-byte pieces each, piece j of lane i belonging to chunk j; afterwards lane i holds
/// the pieces of chunk i in order.
__device__ inline void transpose4(uint32_t (&r)[4], int lane) {
  const int i = lane % 4;
#pragma unroll
  for (int bit = 1; bit <= 2; bit *= 2) {
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      if (j & bit) continue;
      const bool up = i & bit;
      const uint32_t given = up ? r[j] : r[j | bit];
      const uint32_t got = __shfl_xor_sync(0xffffffffu, given, bit);
      if (up)
        r[j] = got;
      else
        r[j | bit] = got;
    }
  }
}

}  // namespace sheaf::cuda
