// Span attention on Hopper: wgmma, and bulk copies of pages. Blocks stay on a multiprocessor and take one
// item (a block of queries and its list of pages) after the other. One warp brings keys and values, three
// bring queries, and one or two warpgroups of 64 queries each compute. While a warpgroup's softmax runs, its
// next scores and its last weighted values are in the matrix unit.
//
// Work: 4 × D FLOPs a query and key; bytes: 4 × D a key and block, so 64 or 128 FLOP per byte read from L2.

#include <stdexcept>

#include "core/model/footprint.h"
#include "cuda/attention/attention.h"
#include "cuda/base/hopper.h"
#include "cuda/base/tensor_map.h"

namespace sheaf::cuda {
namespace {

// A page is two groups of eight keys, as the matrix unit lays out their scores.
constexpr int kPage = 16;
static_assert(kPage == kPageSize, "pages of another size would leave this kernel unused");

/// D: dimensions of a head; kGroups: warpgroups that compute; kKeys: keys of a stage.
template <int D, int kGroups, int kKeys>
struct Shared {
  static constexpr int kStages = 2;
  static constexpr int kHalves = D / 64;  // columns lie in blocks of 64: 128 bytes
  alignas(1024) f16 q[2][kGroups][kHalves][64][64];
  alignas(1024) f16 k[kStages][kHalves][kKeys][64];
  alignas(1024) f16 v[kStages][kHalves][kKeys][64];
  uint64_t q_full[2], q_empty[2];
  uint64_t k_full[kStages], k_empty[kStages], v_full[kStages], v_empty[kStages];
};

#if defined(__CUDA_ARCH_FEAT_SM90_ALL)

/// Where a ring stands: which stage, and how often it went round.
struct RingPlace {
  int at = 0;
  uint32_t round = 0;
  template <int stages>
  __device__ void step() {
    if (++at == stages) {
      at = 0;
      round ^= 1;
    }
  }
};

__device__ int4 no_page() {
  return make_int4(0, 0, 0, 0);
}

/// Whether it holds for any thread of the warpgroup, which all come here.
__device__ bool any_of_warpgroup(bool holds, int barrier) {
  uint32_t any;
  asm volatile(
      "{\n"
      ".reg .pred holds, any;\n"
      "setp.ne.u32 holds, %1, 0;\n"
      "bar.red.or.pred any, %2, 128, holds;\n"
      "selp.u32 %0, 1, 0, any;\n"
      "}\n"
      : "=r"(any)
      : "r"(static_cast<uint32_t>(holds)), "r"(barrier)
      : "memory");
  return any != 0;
}

template <int D, int kGroups, int kKeys>
struct Consumer {
  using Memory = Shared<D, kGroups, kKeys>;
  static constexpr int kPages = kKeys / kPage;
  static constexpr float kRoom = 8;                        // weights of up to 256, which f16 holds
  static constexpr int kScores = kKeys / 2, kOut = D / 2;  // registers of a thread

  const AttentionInputs& in;
  const HeadLayout& layout;
  const AttentionTensors& tensors;
  Memory& memory;
  int group_index, warp, lane, group;
  RingPlace q_place, k_place, v_place;

  float out[kOut];
  float score[kScores];
  float high[2], sum[2], shrink[2];
  int row[2];  // of this thread's queries, as pages count rows

  __device__ void multiply_keys() {
    const f16* q = &memory.q[q_place.at][group_index][0][0][0];
    const f16* k = &memory.k[k_place.at][0][0][0];
    const uint64_t q_tile = tile_descriptor(q, 16), k_tile = tile_descriptor(k, 16);
#pragma unroll
    for (int step = 0; step < D / 16; ++step) {
      const int half = step / 4, inside = step % 4 * 2;  // 32 bytes a step, in units of 16
      multiply_tiles(score, q_tile + half * (64 * 128 / 16) + inside,
                     k_tile + half * (kKeys * 128 / 16) + inside, step != 0);
    }
    products_commit();
  }

  __device__ void multiply_values(const uint32_t (&p)[kKeys / 16][4], bool add) {
    const uint64_t v_tile = tile_descriptor(&memory.v[v_place.at][0][0][0], kKeys * 128);
#pragma unroll
    for (int step = 0; step < kKeys / 16; ++step)
      multiply_registers(out, p[step], v_tile + step * (16 * 128 / 16), add || step != 0);
    products_commit();
  }

  __device__ void give_back(uint64_t* barriers, RingPlace& place) {
    if (lane == 0) barrier_arrive(&barriers[place.at]);
    place.template step<Memory::kStages>();
  }

  /// The page of this lane in a stage.
  __device__ int4 page_at(const AttentionItem& item, int stage) const {
    const int at = stage * kPages + lane;
    if (lane >= kPages || at >= item.page_count) return no_page();
    return reinterpret_cast<const int4*>(in.pages)[item.first_page + at];
  }

  /// Hides what rows do not see. `page` is this lane's page of the stage.
  __device__ void mask(const AttentionItem& item, int4 page) {
    const int first = page.w & 0xffff, last = static_cast<uint32_t>(page.w) >> 16;
    const bool whole =
        lane >= kPages || (page.y == kPage && page.z + item.row_offset >= kPage && first <= item.row_offset &&
                           last >= item.row_offset + item.row_count);
    if (__all_sync(0xffffffffu, whole)) return;
#pragma unroll
    for (int p = 0; p < kPages; ++p) {
      const int keys = __shfl_sync(0xffffffffu, page.y, p), base = __shfl_sync(0xffffffffu, page.z, p);
      const int from = __shfl_sync(0xffffffffu, first, p), to = __shfl_sync(0xffffffffu, last, p);
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        const int seen = row[i] >= from && row[i] < to ? min(keys, base + row[i]) : 0;
#pragma unroll
        for (int n = 0; n < 2; ++n) {
#pragma unroll
          for (int j = 0; j < 2; ++j)
            if (n * 8 + lane % 4 * 2 + j >= seen) score[(p * 2 + n) * 4 + i * 2 + j] = -INFINITY;
        }
      }
    }
  }

  /// Scores to weights relative to the highest score yet.
  __device__ void soften() {
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      float top = high[i];
#pragma unroll
      for (int n = 0; n < kKeys / 8; ++n)
        top = fmaxf(top, fmaxf(score[n * 4 + 2 * i], score[n * 4 + 2 * i + 1]));
      top = fmaxf(top, __shfl_xor_sync(0xffffffffu, top, 1));
      top = fmaxf(top, __shfl_xor_sync(0xffffffffu, top, 2));
      // Nothing seen yet: exp2(-inf - base) is zero, not NaN.
      const float base = top == -INFINITY ? 0.0f : top;
      shrink[i] = fast_exp2(high[i] - base);
      high[i] = top;
      float added = 0;
#pragma unroll
      for (int n = 0; n < kKeys / 8; ++n) {
#pragma unroll
        for (int j = 0; j < 2; ++j) {
          float& s = score[n * 4 + 2 * i + j];
          s = fast_exp2(s - base);
          added += s;
        }
      }
      sum[i] = sum[i] * shrink[i] + added;
    }
  }

  // In order: a row's weights are relative to a base, which is the highest score of the first page that the
  // row sees, and of every later page that exceeds it by more than kRoom. So the base and all sums depend on
  // the row's own pages alone. Stages in which no base moves, nearly all, need no rescaling.

  __device__ float page_high(int page, int i) const {
    float top = -INFINITY;
#pragma unroll
    for (int n = 2 * page; n < 2 * page + 2; ++n)
      top = fmaxf(top, fmaxf(score[n * 4 + 2 * i], score[n * 4 + 2 * i + 1]));
    top = fmaxf(top, __shfl_xor_sync(0xffffffffu, top, 1));
    return fmaxf(top, __shfl_xor_sync(0xffffffffu, top, 2));
  }

  /// Gives rows that have seen no page yet their base. Returns whether a base moves in this stage for any
  /// row of the warp.
  __device__ bool find_bases() {
    bool moves = false;
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      if (__any_sync(0xffffffffu, high[i] == -INFINITY)) {
#pragma unroll
        for (int page = 0; page < kPages; ++page) {
          const float top = page_high(page, i);
          if (high[i] == -INFINITY) high[i] = top;
        }
      }
      float top = -INFINITY;
#pragma unroll
      for (int n = 0; n < kKeys / 8; ++n)
        top = fmaxf(top, fmaxf(score[n * 4 + 2 * i], score[n * 4 + 2 * i + 1]));
      moves = moves || top > high[i] + kRoom;
    }
    return __any_sync(0xffffffffu, moves) != 0;
  }

  __device__ void soften_page(int page) {
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      // Nothing seen yet: exp2(-inf - base) is zero, not NaN.
      const float base = high[i] == -INFINITY ? 0.0f : high[i];
#pragma unroll
      for (int n = 2 * page; n < 2 * page + 2; ++n)
#pragma unroll
        for (int j = 0; j < 2; ++j) {
          float& s = score[n * 4 + 2 * i + j];
          s = fast_exp2(s - base);
          sum[i] += s;
        }
    }
  }

  /// A stage in which a base moves for some warp: page by page, the sums of before shrunk where it does.
  /// `mine`: for this one; else its weights are in p already.
  __device__ void add_page_by_page(uint32_t (&p)[kKeys / 16][4], bool mine) {
    const uint64_t v_tile = tile_descriptor(&memory.v[v_place.at][0][0][0], kKeys * 128);
#pragma unroll
    for (int page = 0; page < kPages; ++page) {
      if (mine) {
#pragma unroll
        for (int i = 0; i < 2; ++i) {
          const float top = page_high(page, i);
          shrink[i] = 1;
          if (top > high[i] + kRoom) {
            shrink[i] = fast_exp2(high[i] - top);
            high[i] = top;
            sum[i] *= shrink[i];
          }
        }
        if (__any_sync(0xffffffffu, shrink[0] != 1 || shrink[1] != 1)) rescale();
        soften_page(page);
#pragma unroll
        for (int j = 0; j < 4; ++j)
          p[page][j] = pack_weights(score[page * 8 + 2 * j], score[page * 8 + 2 * j + 1]);
      }
      pin(out);
      products_begin();
      multiply_registers(out, p[page], v_tile + page * (16 * 128 / 16), true);
      products_commit();
      products_wait<0>();
      pin(out);
    }
  }

  __device__ void weights(uint32_t (&p)[kKeys / 16][4]) const {
#pragma unroll
    for (int k = 0; k < kKeys / 16; ++k)
#pragma unroll
      for (int j = 0; j < 4; ++j) p[k][j] = pack_weights(score[k * 8 + 2 * j], score[k * 8 + 2 * j + 1]);
  }

  __device__ void rescale() {
#pragma unroll
    for (int n = 0; n < D / 8; ++n)
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        out[n * 4 + 2 * i] *= shrink[i];
        out[n * 4 + 2 * i + 1] *= shrink[i];
      }
  }

  __device__ void attend(const AttentionItem& item, int kv_head) {
    const int stages = (item.page_count + kPages - 1) / kPages;
    const int m = group_index * 64 + warp * 16 + lane / 4;
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      row[i] = item.row_offset + (m + 8 * i) / group;
      high[i] = -INFINITY;
      sum[i] = 0;
    }
    uint32_t p[kKeys / 16][4];
    int4 page = page_at(item, 0), next_page = page_at(item, 1);
    barrier_wait(&memory.q_full[q_place.at], q_place.round);
    barrier_wait(&memory.k_full[k_place.at], k_place.round);
    products_begin();
    multiply_keys();
    products_wait<0>();
    pin(score);
    give_back(memory.k_empty, k_place);
    mask(item, page);
    soften();
    weights(p);
    for (int stage = 1; stage < stages; ++stage) {
      page = next_page;
      next_page = page_at(item, stage + 1);
      barrier_wait(&memory.k_full[k_place.at], k_place.round);
      pin(score);
      pin(out);
      products_begin();
      multiply_keys();
      barrier_wait(&memory.v_full[v_place.at], v_place.round);
      products_begin();
      multiply_values(p, stage > 1);
      products_wait<1>();
      pin(score);
      give_back(memory.k_empty, k_place);
      mask(item, page);
      soften();
      products_wait<0>();
      pin(out);
      give_back(memory.v_empty, v_place);
      rescale();
      weights(p);
    }
    if (lane == 0) barrier_arrive(&memory.q_empty[q_place.at]);
    q_place.step<2>();
    barrier_wait(&memory.v_full[v_place.at], v_place.round);
    pin(out);
    products_begin();
    multiply_values(p, stages > 1);
    products_wait<0>();
    pin(out);
    give_back(memory.v_empty, v_place);
    write(item, kv_head, m);
  }

  /// The same in order, see find_bases().
  __device__ void attend_in_order(const AttentionItem& item, int kv_head) {
    const int stages = (item.page_count + kPages - 1) / kPages;
    const int m = group_index * 64 + warp * 16 + lane / 4;
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      row[i] = item.row_offset + (m + 8 * i) / group;
      high[i] = -INFINITY;
      sum[i] = 0;
    }
#pragma unroll
    for (int i = 0; i < kOut; ++i) out[i] = 0;
    uint32_t p[kKeys / 16][4];
    bool waiting = false;  // weights for their values
    int4 next_page = page_at(item, 0);
    barrier_wait(&memory.q_full[q_place.at], q_place.round);
    for (int stage = 0; stage < stages; ++stage) {
      const int4 page = next_page;
      next_page = page_at(item, stage + 1);
      barrier_wait(&memory.k_full[k_place.at], k_place.round);
      pin(score);
      pin(out);
      products_begin();
      multiply_keys();
      if (waiting) {
        barrier_wait(&memory.v_full[v_place.at], v_place.round);
        products_begin();
        multiply_values(p, true);
        products_wait<1>();
      } else {
        products_wait<0>();
      }
      pin(score);
      give_back(memory.k_empty, k_place);
      mask(item, page);
      const bool mine = find_bases();
      if (!mine) {
#pragma unroll
        for (int at = 0; at < kPages; ++at) soften_page(at);
      }
      products_wait<0>();
      pin(out);
      if (waiting) give_back(memory.v_empty, v_place);
      if (!mine) weights(p);
      waiting = !any_of_warpgroup(mine, 1 + group_index);
      if (!waiting) {
        barrier_wait(&memory.v_full[v_place.at], v_place.round);
        add_page_by_page(p, mine);
        give_back(memory.v_empty, v_place);
      }
    }
    if (lane == 0) barrier_arrive(&memory.q_empty[q_place.at]);
    q_place.step<2>();
    if (waiting) {
      barrier_wait(&memory.v_full[v_place.at], v_place.round);
      pin(out);
      products_begin();
      multiply_values(p, true);
      products_wait<0>();
      pin(out);
      give_back(memory.v_empty, v_place);
    }
    write(item, kv_head, m);
  }

  __device__ void write(const AttentionItem& item, int kv_head, int m0) {
    const int queries = item.row_count * group;
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      float total = sum[i];
      total += __shfl_xor_sync(0xffffffffu, total, 1);
      total += __shfl_xor_sync(0xffffffffu, total, 2);
      const float scale = total > 0 ? 1.0f / total : 0.0f;
      const int m = m0 + 8 * i;
      const bool valid = m < queries;
      if (item.first_partial < 0) {
        const int64_t to_row = valid ? in.rows[item.first_row + m / group] : 0;
        bf16* to = tensors.out + (to_row * layout.heads + kv_head * group + m % group) * layout.head_dim;
#pragma unroll
        for (int n = 0; n < D / 8; n += 4) {
          uint32_t chunk[4];
#pragma unroll
          for (int j = 0; j < 4; ++j)
            chunk[j] = pack(out[(n + j) * 4 + 2 * i] * scale, out[(n + j) * 4 + 2 * i + 1] * scale);
          transpose4(chunk, lane);
          const int column = (n + lane % 4) * 8;
          if (valid && column < layout.head_dim)
            *reinterpret_cast<uint4*>(to + column) = make_uint4(chunk[0], chunk[1], chunk[2], chunk[3]);
        }
        continue;
      }
      if (!valid) continue;
      const int64_t query = (int64_t{kv_head} * in.partial_rows + item.first_partial) * group + m;
      float* to = tensors.partial_out + query * D + lane % 4 * 2;
#pragma unroll
      for (int n = 0; n < D / 8; ++n)
        *reinterpret_cast<float2*>(to + n * 8) =
            make_float2(out[n * 4 + 2 * i] * scale, out[n * 4 + 2 * i + 1] * scale);
      if (lane % 4 == 0) tensors.partial_lse[query] = total > 0 ? high[i] + log2f(total) : -INFINITY;
    }
  }
};

/// One warp: pages of keys and values, in the order in which they are used.
template <int D, int kGroups, int kKeys>
__device__ void bring_pages(Shared<D, kGroups, kKeys>& memory, const CUtensorMap* k_map,
                            const CUtensorMap* v_map, const AttentionInputs& in, const AttentionItem* items,
                            int work_count, const HeadLayout& layout, int lane) {
  using Memory = Shared<D, kGroups, kKeys>;
  constexpr int kPages = kKeys / kPage;
  constexpr uint32_t kBytes = kKeys * D * sizeof(f16);
  RingPlace k_place, v_place;
  const int nowhere = static_cast<int>(layout.slots);  // outside of the tensor: zeros
  const int4* pages = reinterpret_cast<const int4*>(in.pages);
  for (int work = blockIdx.x; work < work_count; work += gridDim.x) {
    const AttentionItem item = items[work / layout.kv_heads];
    const int kv_head = work % layout.kv_heads;
    const int stages = (item.page_count + kPages - 1) / kPages;
    auto slot_at = [&](int stage) {
      const int at = stage * kPages + lane;
      return lane < kPages && at < item.page_count ? pages[item.first_page + at].x : nowhere;
    };
    auto bring = [&](f16(&to)[Memory::kStages][Memory::kHalves][kKeys][64], const CUtensorMap* map, int slot,
                     uint64_t* full, uint64_t* empty, RingPlace& place) {
      barrier_wait(&empty[place.at], place.round ^ 1);
      if (lane == 0) barrier_expect(&full[place.at], kBytes);
      __syncwarp();
      if (lane < kPages) {
#pragma unroll
        for (int half = 0; half < Memory::kHalves; ++half)
          copy_box(&to[place.at][half][lane * kPage][0], map, half * 64, slot, kv_head, &full[place.at]);
      }
      place.template step<Memory::kStages>();
    };
    int slot = slot_at(0), slot_before = 0;
    for (int stage = 0; stage <= stages; ++stage) {
      const int next = slot_at(stage + 1);
      if (stage < stages) bring(memory.k, k_map, slot, memory.k_full, memory.k_empty, k_place);
      if (stage > 0) bring(memory.v, v_map, slot_before, memory.v_full, memory.v_empty, v_place);
      slot_before = slot;
      slot = next;
    }
  }
}

/// Three warps: the queries of the next item while the warpgroups are at this one.
template <int D, int kGroups, int kKeys>
__device__ void bring_queries(Shared<D, kGroups, kKeys>& memory, const AttentionInputs& in,
                              const AttentionItem* items, int work_count, const HeadLayout& layout,
                              const f16* q, int thread) {
  constexpr int kChunks = D / 8;
  const int group = layout.heads / layout.kv_heads;
  RingPlace place;
  for (int work = blockIdx.x; work < work_count; work += gridDim.x) {
    const AttentionItem item = items[work / layout.kv_heads];
    const int kv_head = work % layout.kv_heads;
    const int queries = item.row_count * group;
    barrier_wait(&memory.q_empty[place.at], place.round ^ 1);
    for (int i = thread; i < 64 * kGroups * kChunks; i += 96) {
      const int m = i / kChunks, chunk = i % kChunks;
      const bool valid = m < queries;
      const int64_t row = valid ? in.rows[item.first_row + m / group] : 0;
      const f16* from = q + (row * layout.heads + kv_head * group + m % group) * D + chunk * 8;
      f16* to = &memory.q[place.at][m / 64][chunk / 8][m % 64][((chunk % 8) ^ (m % 8)) * 8];
      asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(shared_address(to)), "l"(from),
                   "r"(valid ? 16 : 0));
    }
    asm volatile("cp.async.wait_all;" ::: "memory");
    fence_shared_writes();
    barrier_arrive(&memory.q_full[place.at]);
    place.step<2>();
  }
}
#endif

/// `k_map`, `v_map`: boxes of a page and 64 columns of keys and values [kv_heads, slots, D]; `inputs` [1].
template <int D, int kGroups, int kKeys, bool kInOrder>
__global__ __launch_bounds__(128 * (kGroups + 1), kGroups == 1 ? 2 : 1) void attend_kernel(
    const __grid_constant__ CUtensorMap k_map, const __grid_constant__ CUtensorMap v_map,
    const AttentionInputs* inputs, const __grid_constant__ HeadLayout layout,
    const __grid_constant__ AttentionTensors tensors) {
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
  using Memory = Shared<D, kGroups, kKeys>;
  extern __shared__ uint8_t bytes[];
  // The base of dynamic shared memory need not be aligned to 1,024 bytes.
  Memory& memory = *reinterpret_cast<Memory*>((reinterpret_cast<uintptr_t>(bytes) + 1023) & ~uintptr_t{1023});
  const int warpgroup = this_warpgroup(), lane = threadIdx.x % 32;
  const AttentionInputs& in = *inputs;
  const AttentionItem* items = kGroups == 1 ? in.items : in.items + in.small_items;
  const int work_count = (kGroups == 1 ? in.small_items : in.large_items) * layout.kv_heads;
  if (threadIdx.x == 0) {
    for (int i = 0; i < 2; ++i) {
      barrier_init(&memory.q_full[i], 96);
      barrier_init(&memory.q_empty[i], 4 * kGroups);
    }
    for (int i = 0; i < Memory::kStages; ++i) {
      barrier_init(&memory.k_full[i], 1);
      barrier_init(&memory.v_full[i], 1);
      barrier_init(&memory.k_empty[i], 4 * kGroups);
      barrier_init(&memory.v_empty[i], 4 * kGroups);
    }
    fence_barrier_init();
  }
  __syncthreads();

  if (warpgroup == 0) {
    keep_registers<40>();
    const int warp = threadIdx.x / 32;
    if (warp == 0)
      bring_pages(memory, &k_map, &v_map, in, items, work_count, layout, lane);
    else
      bring_queries(memory, in, items, work_count, layout, tensors.q, static_cast<int>(threadIdx.x) - 32);
  } else {
    take_registers<kGroups == 1 ? 216 : 232>();
    Consumer<D, kGroups, kKeys> consumer{in,
                                         layout,
                                         tensors,
                                         memory,
                                         warpgroup - 1,
                                         static_cast<int>(threadIdx.x) / 32 % 4,
                                         lane,
                                         layout.heads / layout.kv_heads};
    for (int work = blockIdx.x; work < work_count; work += gridDim.x) {
      const AttentionItem& item = items[work / layout.kv_heads];
      if constexpr (kInOrder)
        consumer.attend_in_order(item, work % layout.kv_heads);
      else
        consumer.attend(item, work % layout.kv_heads);
    }
  }
#endif
}

/// Pages of [kv_heads, slots, D], 64 columns at a time.
bool page_map(const f16* tensor, const HeadLayout& layout, CUtensorMap& map) {
  const auto d = static_cast<cuuint64_t>(layout.padded_dim), slots = static_cast<cuuint64_t>(layout.slots);
  const cuuint64_t sizes[3] = {d, slots, static_cast<cuuint64_t>(layout.kv_heads)};
  const cuuint64_t strides[2] = {d * sizeof(f16), d * slots * sizeof(f16)};
  const cuuint32_t box[3] = {64, kPage, 1};
  const cuuint32_t steps[3] = {1, 1, 1};
  return tensor_map_encoder()(&map, CU_TENSOR_MAP_DATA_TYPE_FLOAT16, 3, const_cast<f16*>(tensor), sizes,
                              strides, box, steps, CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B,
                              CU_TENSOR_MAP_L2_PROMOTION_L2_256B,
                              CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE) == CUDA_SUCCESS;
}

template <int D, int kGroups, int kKeys, bool kInOrder>
void launch(const CUtensorMap& k_map, const CUtensorMap& v_map, const AttentionInputs* in,
            const HeadLayout& layout, const AttentionTensors& tensors, int multiprocessors,
            cudaStream_t stream) {
  constexpr int shared = static_cast<int>(sizeof(Shared<D, kGroups, kKeys>)) + 1024;
  const auto kernel = attend_kernel<D, kGroups, kKeys, kInOrder>;
  static const cudaError_t ready =
      cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, shared);
  if (ready != cudaSuccess) throw std::runtime_error("CUDA: no shared memory for attention");
  // As many blocks as fit, whatever the step: a replayed graph may find more to do than there was when it was
  // made.
  const int blocks = multiprocessors * (kGroups == 1 ? 2 : 1);
  kernel<<<blocks, 128 * (kGroups + 1), shared, stream>>>(k_map, v_map, in, layout, tensors);
}

template <int D, bool kInOrder>
void launch_all(const CUtensorMap& k_map, const CUtensorMap& v_map, const AttentionInputs& in,
                const AttentionInputs* on_device, const HeadLayout& layout, const AttentionTensors& tensors,
                int multiprocessors, cudaStream_t stream) {
  if (in.large_items > 0)
    launch<D, 2, 128, kInOrder>(k_map, v_map, on_device, layout, tensors, multiprocessors, stream);
  if (in.small_items > 0)
    launch<D, 1, 64, kInOrder>(k_map, v_map, on_device, layout, tensors, multiprocessors, stream);
}

int multiprocessors_for(const HeadLayout& layout, int32_t page_size) {
  static const int multiprocessors = hopper_multiprocessors(attend_kernel<128, 2, 128, false>);
  const bool fits =
      page_size == kPage && layout.head_dim % 8 == 0 && (layout.padded_dim == 64 || layout.padded_dim == 128);
  return fits ? multiprocessors : 0;
}

}  // namespace

bool hopper_attention(const HeadLayout& layout, int32_t page_size) {
  return multiprocessors_for(layout, page_size) > 0;
}

bool attend_hopper(const AttentionInputs& inputs, const AttentionInputs* on_device, const HeadLayout& layout,
                   const AttentionTensors& tensors, cudaStream_t stream) {
  const int multiprocessors = multiprocessors_for(layout, inputs.page_size);
  if (multiprocessors == 0) return false;
  CUtensorMap k_map, v_map;
  if (!page_map(tensors.keys, layout, k_map) || !page_map(tensors.values, layout, v_map))
    throw std::runtime_error("CUDA: the driver refuses a map of the pool");
  const auto run = layout.padded_dim == 128
                       ? (inputs.in_order ? launch_all<128, true> : launch_all<128, false>)
                       : (inputs.in_order ? launch_all<64, true> : launch_all<64, false>);
  run(k_map, v_map, inputs, on_device, layout, tensors, multiprocessors, stream);
  return true;
}

}  // namespace sheaf::cuda
