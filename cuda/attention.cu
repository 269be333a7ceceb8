// Span attention. A block takes up to 64 or 128 queries (rows × the query heads of one key/value head) that look at the same ranges
// of keys, and reads each range once for all of them. Where that is all its rows see, the result is whole; else it is partial,
// with its log-sum-exp (base 2), and a second kernel merges a row's partial results in fp32. No mask is stored: for each span
// a row carries the number of keys it sees.
//
// Work: 4 × head_dim FLOPs a query and key; bytes: 4 × head_dim a key and block, so 64 or 128 FLOP per byte read from L2.
//
// Ladder
//   v1  mma.sync m16n8k16 bf16, 64 queries × 64 keys, two cp.async stages, queries in registers; every span partial
//   v2  rows of one segment go over all their spans in one block (no partial results in prefill); blocks of 128 queries
#include "cuda/ops.h"

namespace sheaf::cuda {
namespace {

constexpr int kKeys = 64;  // of a stage

__device__ uint32_t shared_address(const void* pointer) {
  return static_cast<uint32_t>(__cvta_generic_to_shared(pointer));
}

/// Copies 16 bytes, or writes zeros where `valid` is false.
__device__ void copy16(void* to, const void* from, bool valid) {
  const int bytes = valid ? 16 : 0;
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(shared_address(to)), "l"(from), "r"(bytes));
}
__device__ void commit_copies() { asm volatile("cp.async.commit_group;"); }
template <int pending>
__device__ void wait_copies() {
  asm volatile("cp.async.wait_group %0;" ::"n"(pending));
}

__device__ void load4(uint32_t (&r)[4], const void* from) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(shared_address(from)));
}
__device__ void load4_transposed(uint32_t (&r)[4], const void* from) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(shared_address(from)));
}
__device__ void multiply(float (&c)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}
__device__ uint32_t pack(float low, float high) {
  const __nv_bfloat162 pair = __floats2bfloat162_rn(low, high);
  return *reinterpret_cast<const uint32_t*>(&pair);
}

/// A tile [rows][D] of bf16 in shared memory, its 16-byte chunks swizzled so that eight rows of a column fall into
/// different banks.
template <int D>
struct Tile {
  static constexpr int chunks = D / 8;
  bf16* data;
  __device__ bf16* at(int row, int column) const {
    const int twist = D >= 64 ? row & 7 : (row >> 1) & 3;
    return data + row * D + (((column / 8) ^ twist) * 8);
  }
};

template <int D, int kQueries>
__global__ __launch_bounds__(2 * kQueries) void attend_kernel(AttentionInputs in, const AttentionItem* items, HeadLayout layout,
                                                             const bf16* q, const bf16* keys, const bf16* values,
                                                             float* partial_out, float* partial_lse, bf16* out_rows) {
  constexpr int kThreads = 2 * kQueries;  // a warp for 16 queries
  extern __shared__ __align__(128) uint8_t memory[];
  const Tile<D> q_tile{reinterpret_cast<bf16*>(memory)};
  auto stage = [&](int index) { return reinterpret_cast<bf16*>(memory) + (kQueries + index * kKeys) * D; };

  const AttentionItem item = items[blockIdx.x];
  const AttentionRange* ranges = in.ranges + item.first_range;
  const int kv_head = blockIdx.y;
  const int group = layout.heads / layout.kv_heads;
  const int queries = item.row_count * group;
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const bf16* head_keys = keys + int64_t{kv_head} * layout.slots * D;
  const bf16* head_values = values + int64_t{kv_head} * layout.slots * D;

  auto load_keys = [&](const AttentionRange& range, int first, int buffer) {
    const Tile<D> k_tile{stage(2 * buffer)}, v_tile{stage(2 * buffer + 1)};
    for (int i = threadIdx.x; i < kKeys * Tile<D>::chunks; i += kThreads) {
      const int row = i / Tile<D>::chunks, column = i % Tile<D>::chunks * 8;
      const int key = first + row;
      const bool valid = key < range.last_key;
      int64_t slot = 0;
      if (valid) slot = int64_t{in.pages[range.first_page + key / in.page_size]} * in.page_size + key % in.page_size;
      copy16(k_tile.at(row, column), head_keys + slot * D + column, valid);
      copy16(v_tile.at(row, column), head_values + slot * D + column, valid);
    }
    commit_copies();
  };

  for (int i = threadIdx.x; i < kQueries * Tile<D>::chunks; i += kThreads) {
    const int m = i / Tile<D>::chunks, column = i % Tile<D>::chunks * 8;
    const bool valid = m < queries;
    const int row = valid ? in.tile_rows[ranges[0].first_row + m / group].x : 0;
    copy16(q_tile.at(m, column), q + (int64_t{row} * layout.heads + kv_head * group + m % group) * D + column, valid);
  }
  commit_copies();
  load_keys(ranges[0], ranges[0].first_key, 0);
  wait_copies<1>();
  __syncthreads();

  const int m0 = warp * 16;
  const bool busy = m0 < queries;
  int limit[2];
  auto read_limits = [&](const AttentionRange& range) {
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const int m = m0 + lane / 4 + 8 * i;
      limit[i] = m < queries ? in.tile_rows[range.first_row + m / group].y : 0;
    }
  };
  read_limits(ranges[0]);
  uint32_t a[D / 16][4];
#pragma unroll
  for (int k = 0; k < D / 16; ++k) load4(a[k], q_tile.at(m0 + (lane / 8) % 2 * 8 + lane % 8, k * 16 + lane / 16 * 8));

  float out[D / 8][4] = {};
  float high[2] = {-INFINITY, -INFINITY}, sum[2] = {0, 0};
  int buffer = 0, at = 0;
  int first = ranges[0].first_key, last = ranges[0].last_key;
  while (true) {
    // What comes next: more keys of this range, or the first of the next one.
    const bool more = first + kKeys < last;
    const bool another = !more && at + 1 < item.range_count;
    const int next = more ? first + kKeys : another ? ranges[at + 1].first_key : 0;
    if (more || another) {
      load_keys(ranges[at + (another ? 1 : 0)], next, buffer ^ 1);
      wait_copies<1>();
    } else {
      wait_copies<0>();
    }
    __syncthreads();
    if (busy) {
      const Tile<D> k_tile{stage(2 * buffer)}, v_tile{stage(2 * buffer + 1)};
      float score[kKeys / 8][4] = {};
#pragma unroll
      for (int k = 0; k < D / 16; ++k) {
#pragma unroll
        for (int n = 0; n < kKeys / 16; ++n) {
          uint32_t b[4];
          load4(b, k_tile.at(n * 16 + lane / 16 * 8 + lane % 8, k * 16 + lane / 8 % 2 * 8));
          multiply(score[2 * n], a[k], b[0], b[1]);
          multiply(score[2 * n + 1], a[k], b[2], b[3]);
        }
      }
      float top[2] = {high[0], high[1]};
#pragma unroll
      for (int n = 0; n < kKeys / 8; ++n) {
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          const int key = first + n * 8 + lane % 4 * 2 + i % 2;
          if (key >= limit[i / 2]) score[n][i] = -INFINITY;
          top[i / 2] = fmaxf(top[i / 2], score[n][i]);
        }
      }
      float base[2];
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        top[i] = fmaxf(top[i], __shfl_xor_sync(0xffffffffu, top[i], 1));
        top[i] = fmaxf(top[i], __shfl_xor_sync(0xffffffffu, top[i], 2));
        base[i] = top[i] == -INFINITY ? 0.0f : top[i];  // nothing seen yet: keep exp2(-inf - base) at zero, not NaN
        const float shrink = exp2f(high[i] - base[i]);
        high[i] = top[i];
        sum[i] *= shrink;
#pragma unroll
        for (int n = 0; n < D / 8; ++n) {
          out[n][2 * i] *= shrink;
          out[n][2 * i + 1] *= shrink;
        }
      }
#pragma unroll
      for (int n = 0; n < kKeys / 8; ++n) {
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          score[n][i] = exp2f(score[n][i] - base[i / 2]);
          sum[i / 2] += score[n][i];
        }
      }
#pragma unroll
      for (int k = 0; k < kKeys / 16; ++k) {
        const uint32_t p[4] = {pack(score[2 * k][0], score[2 * k][1]), pack(score[2 * k][2], score[2 * k][3]),
                               pack(score[2 * k + 1][0], score[2 * k + 1][1]),
                               pack(score[2 * k + 1][2], score[2 * k + 1][3])};
#pragma unroll
        for (int n = 0; n < D / 16; ++n) {
          uint32_t b[4];
          load4_transposed(b, v_tile.at(k * 16 + lane / 8 % 2 * 8 + lane % 8, n * 16 + lane / 16 * 8));
          multiply(out[2 * n], p, b[0], b[1]);
          multiply(out[2 * n + 1], p, b[2], b[3]);
        }
      }
    }
    __syncthreads();
    if (!more && !another) break;
    if (another) {
      ++at;
      last = ranges[at].last_key;
      read_limits(ranges[at]);
    }
    first = next;
    buffer ^= 1;
  }

  const int64_t base_query = (int64_t{kv_head} * in.partial_rows + item.first_partial) * group;
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    sum[i] += __shfl_xor_sync(0xffffffffu, sum[i], 1);
    sum[i] += __shfl_xor_sync(0xffffffffu, sum[i], 2);
    const int m = m0 + lane / 4 + 8 * i;
    if (m >= queries) continue;
    const float scale = sum[i] > 0 ? 1.0f / sum[i] : 0.0f;
    if (item.first_partial < 0) {
      const int row = in.tile_rows[ranges[0].first_row + m / group].x;
      bf16* to = out_rows + (int64_t{row} * layout.heads + kv_head * group + m % group) * layout.head_dim + lane % 4 * 2;
#pragma unroll
      for (int n = 0; n < D / 8; ++n)
        if (n * 8 + lane % 4 * 2 < layout.head_dim)
          *reinterpret_cast<uint32_t*>(to + n * 8) = pack(out[n][2 * i] * scale, out[n][2 * i + 1] * scale);
      continue;
    }
    float* to = partial_out + (base_query + m) * D + lane % 4 * 2;
#pragma unroll
    for (int n = 0; n < D / 8; ++n)
      *reinterpret_cast<float2*>(to + n * 8) = make_float2(out[n][2 * i] * scale, out[n][2 * i + 1] * scale);
    if (lane % 4 == 0) partial_lse[base_query + m] = sum[i] > 0 ? high[i] + log2f(sum[i]) : -INFINITY;
  }
}

/// One block a row, one warp a head at a time.
template <int D>
__global__ void merge_kernel(AttentionInputs in, HeadLayout layout, const float* partial_out, const float* partial_lse,
                             bf16* out) {
  const int row = in.merged_rows[blockIdx.x];
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const int group = layout.heads / layout.kv_heads;
  const int begin = in.partial_begin[blockIdx.x], end = in.partial_begin[blockIdx.x + 1];
  for (int head = warp; head < layout.heads; head += static_cast<int>(blockDim.x) / 32) {
    auto query = [&](int i) {
      return (int64_t{head / group} * in.partial_rows + in.partials[i]) * group + head % group;
    };
    float high = -INFINITY;
    for (int i = begin; i < end; ++i) high = fmaxf(high, partial_lse[query(i)]);
    float result[D / 32] = {};
    float sum = 0;
    for (int i = begin; i < end; ++i) {
      const int64_t at = query(i);
      const float weight = exp2f(partial_lse[at] - high);
      sum += weight;
#pragma unroll
      for (int j = 0; j < D / 32; ++j) result[j] += weight * partial_out[at * D + j * 32 + lane];
    }
    bf16* to = out + (int64_t{row} * layout.heads + head) * layout.head_dim;
#pragma unroll
    for (int j = 0; j < D / 32; ++j)
      if (j * 32 + lane < layout.head_dim) to[j * 32 + lane] = __float2bfloat16(result[j] / sum);
  }
}

template <int D, int kQueries>
void launch_blocks(const AttentionInputs& in, const AttentionItem* items, int32_t count, const HeadLayout& layout, const bf16* q,
                   const bf16* keys, const bf16* values, float* partial_out, float* partial_lse, bf16* out,
                   cudaStream_t stream) {
  if (count == 0) return;
  constexpr int shared = (kQueries + 4 * kKeys) * D * static_cast<int>(sizeof(bf16));
  cudaFuncSetAttribute(attend_kernel<D, kQueries>, cudaFuncAttributeMaxDynamicSharedMemorySize, shared);
  const dim3 grid(static_cast<unsigned>(count), static_cast<unsigned>(layout.kv_heads));
  attend_kernel<D, kQueries><<<grid, 2 * kQueries, shared, stream>>>(in, items, layout, q, keys, values, partial_out,
                                                                    partial_lse, out);
}

template <int D>
void launch(const AttentionInputs& in, const HeadLayout& layout, const bf16* q, const bf16* keys, const bf16* values,
            float* partial_out, float* partial_lse, bf16* out, cudaStream_t stream) {
  launch_blocks<D, kLargeBlock>(in, in.items + in.small_items, in.large_items, layout, q, keys, values, partial_out,
                                partial_lse, out, stream);
  launch_blocks<D, kSmallBlock>(in, in.items, in.small_items, layout, q, keys, values, partial_out, partial_lse, out, stream);
  if (in.merged_count > 0)
    merge_kernel<D><<<in.merged_count, 256, 0, stream>>>(in, layout, partial_out, partial_lse, out);
}

}  // namespace

void attend(const AttentionInputs& inputs, const HeadLayout& layout, const bf16* q, const bf16* keys, const bf16* values,
            float* partial_out, float* partial_lse, bf16* out, cudaStream_t stream) {
  switch (layout.padded_dim) {
    case 32: return launch<32>(inputs, layout, q, keys, values, partial_out, partial_lse, out, stream);
    case 64: return launch<64>(inputs, layout, q, keys, values, partial_out, partial_lse, out, stream);
    case 128: return launch<128>(inputs, layout, q, keys, values, partial_out, partial_lse, out, stream);
    default: return launch<256>(inputs, layout, q, keys, values, partial_out, partial_lse, out, stream);
  }
}

}  // namespace sheaf::cuda
