#pragma once
#include "cuda/attention/hopper_memory.h"
#include "cuda/base/hopper.h"

/// What a warpgroup of the Hopper kernel computes.
namespace sheaf::cuda {
namespace {

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

template <class T, int D, int kGroups, int kKeys, class Sight>
struct Consumer {
  using Memory = Shared<T, D, kGroups, kKeys>;
  static constexpr bool kNarrow = Memory::kNarrow;
  static constexpr int kPages = kKeys / kPage;
  static constexpr int kDepth = 32 / static_cast<int>(sizeof(T));  // numbers that one product sums up
  static constexpr float kRoom = kNarrow ? 8.8f : 8;  // weights of up to 446 or 256, which T holds
  /// e4m3: the highest weight, in base 2, where a base is found, so that small ones behind a sink count; and
  /// where it moves.
  static constexpr float kFirst = 8, kMoved = 5;
  static constexpr int kFold = 1024 / kKeys;               // stages
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
  float factor[2], value_scale;  // e4m3: what takes scores and values back from their scales
  float folded_shrink[2];        // e4m3: since the last fold()
  int row[2];                    // of this thread's queries, as pages count rows
  int to_row[2];                 // where their results go, -1: nowhere
  Sight sight;

  /// A page as this lane has it, and the position of its first key.
  struct Page {
    int4 page;
    int position;
  };

  using Weights = uint32_t[kKeys / kDepth][4];

  __device__ void multiply_keys() {
    constexpr int kLine = Memory::kLine;
    const uint64_t q_tile = tile_descriptor<kLine>(&memory.q[q_place.at][group_index][0][0][0], 16);
    const uint64_t k_tile = tile_descriptor<kLine>(&memory.k[k_place.at][0][0][0], 16);
#pragma unroll
    for (int step = 0; step < D / kDepth; ++step) {
      // 32 bytes a step, in units of 16
      const int half = step / (kLine / 32), inside = step % (kLine / 32) * 2;
      const uint64_t a = q_tile + half * (64 * kLine / 16) + inside,
                     b = k_tile + half * (kKeys * kLine / 16) + inside;
      if constexpr (kNarrow)
        multiply_tiles_fp8(score, a, b, step != 0);
      else
        multiply_tiles(score, a, b, step != 0);
    }
    products_commit();
  }

  __device__ void multiply_values(const Weights& p, bool add) {
    const void* v = &memory.v[v_place.at][0][0][0];
    const uint64_t v_tile = kNarrow ? columns_descriptor(v, kPage * D) : tile_descriptor(v, kKeys * 128);
    constexpr int kStep = kNarrow ? kDepth * D / 16 : kDepth * 128 / 16;
#pragma unroll
    for (int step = 0; step < kKeys / kDepth; ++step) {
      if constexpr (kNarrow)
        multiply_registers_fp8(out, p[step], v_tile + step * kStep, add || step != 0);
      else
        multiply_registers(out, p[step], v_tile + step * kStep, add || step != 0);
    }
    products_commit();
  }

  __device__ void give_back(uint64_t* barriers, RingPlace& place) {
    if (lane == 0) barrier_arrive(&barriers[place.at]);
    place.template step<Memory::kStages>();
  }

  /// The page of this lane in a stage.
  __device__ Page page_at(const AttentionItem& item, int stage) const {
    const int at = stage * kPages + lane;
    if (lane >= kPages || at >= item.page_count) return {no_page(), 0};
    return {reinterpret_cast<const int4*>(in.pages)[item.first_page + at],
            sight.position(in, item.first_page + at)};
  }

  /// Hides what rows do not see. `own` is this lane's page of the stage.
  __device__ void mask(const AttentionItem& item, const Page& own) {
    const int4 page = own.page;
    const int first = page.w & 0xffff, last = static_cast<uint32_t>(page.w) >> 16;
    const bool whole =
        lane >= kPages || (page.y == kPage && page.z + item.row_offset >= kPage && first <= item.row_offset &&
                           last >= item.row_offset + item.row_count && sight.whole(own.position));
    if (__all_sync(0xffffffffu, whole)) return;
#pragma unroll
    for (int p = 0; p < kPages; ++p) {
      const int keys = __shfl_sync(0xffffffffu, page.y, p), base = __shfl_sync(0xffffffffu, page.z, p);
      const int from = __shfl_sync(0xffffffffu, first, p), to = __shfl_sync(0xffffffffu, last, p);
      const int position = __shfl_sync(0xffffffffu, own.position, p);
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        const int seen = row[i] >= from && row[i] < to ? min(keys, base + row[i]) : 0;
        const int hidden = sight.hidden(i, position);
#pragma unroll
        for (int n = 0; n < 2; ++n) {
#pragma unroll
          for (int j = 0; j < 2; ++j) {
            const int key = n * 8 + lane % 4 * 2 + j;
            if (key >= seen || key < hidden) score[(p * 2 + n) * 4 + i * 2 + j] = -INFINITY;
          }
        }
      }
    }
  }

  /// The highest score of this thread's query i among its keys of groups `from` to `to` of eight.
  __device__ float own_top(int i, int from, int to) const {
    float top = -INFINITY;
#pragma unroll
    for (int n = from; n < to; ++n) top = fmaxf(top, fmaxf(score[n * 4 + 2 * i], score[n * 4 + 2 * i + 1]));
    return top;
  }
  /// The highest of the four threads that share a query.
  __device__ static float shared_top(float top) {
    top = fmaxf(top, __shfl_xor_sync(0xffffffffu, top, 1));
    return fmaxf(top, __shfl_xor_sync(0xffffffffu, top, 2));
  }

  /// Scores to weights relative to the highest score yet.
  __device__ void soften() {
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const float top = shared_top(fmaxf(high[i], own_top(i, 0, kKeys / 8)));
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

  /// The same for e4m3, relative to a base that moves only when a score exceeds it by kRoom.
  __device__ void soften_narrow() {
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const float top = shared_top(own_top(i, 0, kKeys / 8)) * factor[i];
      shrink[i] = 1;
      if (top > high[i] + kRoom) {
        const float base = top - (high[i] == -INFINITY ? kFirst : kMoved);
        shrink[i] = fast_exp2(high[i] - base);
        high[i] = base;
      }
      const float base = high[i] == -INFINITY ? 0.0f : high[i];
      float added = 0;
#pragma unroll
      for (int n = 0; n < kKeys / 8; ++n) {
#pragma unroll
        for (int j = 0; j < 2; ++j) {
          float& s = score[n * 4 + 2 * i + j];
          s = fast_exp2(fmaf(s, factor[i], -base));
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
    return shared_top(own_top(i, 2 * page, 2 * page + 2));
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
      moves = moves || own_top(i, 0, kKeys / 8) > high[i] + kRoom;
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
  __device__ void add_page_by_page(Weights& p, bool mine) {
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

  __device__ void weights(Weights& p) const {
#pragma unroll
    for (int k = 0; k < kKeys / kDepth; ++k) {
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        if constexpr (kNarrow) {
          // Of a page, a thread has the keys that NarrowKeys puts side by side.
          const int at = k * 16 + j / 2 * 8 + j % 2 * 2;
          p[k][j] = pack_e4m3(score[at], score[at + 1]) | pack_e4m3(score[at + 4], score[at + 5]) << 16;
        } else {
          p[k][j] = pack_weights(score[k * 8 + 2 * j], score[k * 8 + 2 * j + 1]);
        }
      }
    }
  }

  __device__ void rescale() {
    if constexpr (kNarrow) {
      folded_shrink[0] *= shrink[0];
      folded_shrink[1] *= shrink[1];
    }
#pragma unroll
    for (int n = 0; n < D / 8; ++n)
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        out[n * 4 + 2 * i] *= shrink[i];
        out[n * 4 + 2 * i + 1] *= shrink[i];
      }
  }

  /// The matrix unit keeps about 14 bits of a running sum of e4m3 products and cuts off the rest: over many
  /// keys, sums would shrink. So every kFold stages they are added up in fp32, and start anew.
  __device__ void fold(bool first) {
    float4* here = &memory.folded[group_index * D / 8][threadIdx.x % 128];
    if (!first) add_folded();
#pragma unroll
    for (int n = 0; n < D / 8; ++n)
      here[n * 128] = make_float4(out[n * 4], out[n * 4 + 1], out[n * 4 + 2], out[n * 4 + 3]);
    folded_shrink[0] = folded_shrink[1] = 1;
  }
  __device__ void add_folded() {
    const float4* from = &memory.folded[group_index * D / 8][threadIdx.x % 128];
#pragma unroll
    for (int n = 0; n < D / 8; ++n) {
      const float4 before = from[n * 128];
      out[n * 4] += before.x * folded_shrink[0];
      out[n * 4 + 1] += before.y * folded_shrink[0];
      out[n * 4 + 2] += before.z * folded_shrink[1];
      out[n * 4 + 3] += before.w * folded_shrink[1];
    }
  }

  /// Nothing is summed up yet. Returns this thread's first query.
  __device__ int begin(const AttentionItem& item, int kv_head) {
    const int m = group_index * 64 + warp * 16 + lane / 4;
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const int at = (m + 8 * i) / group;
      row[i] = item.row_offset + at;
      to_row[i] = at < item.row_count ? in.rows[item.first_row + at] : -1;
      high[i] = -INFINITY;
      sum[i] = 0;
    }
    sight.begin(in, to_row);
    if constexpr (kNarrow) {
      const float* scales = tensors.narrow.scales;
      const float key_scale = scales[layout.heads + kv_head];
      value_scale = scales[layout.heads + layout.kv_heads + kv_head];
      folded_shrink[0] = folded_shrink[1] = 1;
#pragma unroll
      for (int i = 0; i < 2; ++i) factor[i] = scales[kv_head * group + (m + 8 * i) % group] * key_scale;
    }
    return m;
  }

  __device__ void soften_stage() {
    if constexpr (kNarrow)
      soften_narrow();
    else
      soften();
  }

  __device__ void attend(const AttentionItem& item, int kv_head) {
    const int stages = (item.page_count + kPages - 1) / kPages;
    const int m = begin(item, kv_head);
    Weights p;
    Page page = page_at(item, 0), next_page = page_at(item, 1);
    barrier_wait(&memory.q_full[q_place.at], q_place.round);
    barrier_wait(&memory.k_full[k_place.at], k_place.round);
    products_begin();
    multiply_keys();
    products_wait<0>();
    pin(score);
    give_back(memory.k_empty, k_place);
    mask(item, page);
    soften_stage();
    weights(p);
    int summed = 0;       // stages in `out`
    bool folded = false;  // some before them
    const auto scale_narrow_sums = [&] {
      if (__any_sync(0xffffffffu, shrink[0] != 1 || shrink[1] != 1)) rescale();
      if (summed < kFold) return;
      fold(!folded);
      folded = true;
      summed = 0;
    };
    for (int stage = 1; stage < stages; ++stage) {
      page = next_page;
      next_page = page_at(item, stage + 1);
      barrier_wait(&memory.k_full[k_place.at], k_place.round);
      pin(score);
      products_begin();
      multiply_keys();
      if constexpr (kNarrow) {
        if (stage > 1) scale_narrow_sums();  // beside that product
      }
      barrier_wait(&memory.v_full[v_place.at], v_place.round);
      pin(out);
      products_begin();
      multiply_values(p, summed > 0);
      products_wait<1>();
      pin(score);
      give_back(memory.k_empty, k_place);
      mask(item, page);
      soften_stage();
      products_wait<0>();
      pin(out);
      give_back(memory.v_empty, v_place);
      ++summed;
      if constexpr (!kNarrow) rescale();
      weights(p);
    }
    if (lane == 0) barrier_arrive(&memory.q_empty[q_place.at]);
    q_place.step<2>();
    if constexpr (kNarrow) {
      if (stages > 1) scale_narrow_sums();
    }
    barrier_wait(&memory.v_full[v_place.at], v_place.round);
    pin(out);
    products_begin();
    multiply_values(p, summed > 0);
    products_wait<0>();
    pin(out);
    give_back(memory.v_empty, v_place);
    if constexpr (kNarrow) {
      if (folded) add_folded();
    }
    write(item, kv_head, m);
  }

  /// The same in order, see find_bases().
  __device__ void attend_in_order(const AttentionItem& item, int kv_head) {
    const int stages = (item.page_count + kPages - 1) / kPages;
    const int m = begin(item, kv_head);
#pragma unroll
    for (int i = 0; i < kOut; ++i) out[i] = 0;
    Weights p;
    bool waiting = false;  // weights for their values
    Page next_page = page_at(item, 0);
    barrier_wait(&memory.q_full[q_place.at], q_place.round);
    for (int stage = 0; stage < stages; ++stage) {
      const Page page = next_page;
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

  /// One of a thread's two results as e4m3.
  __device__ void write_narrow(int i, float scale, int head) {
    float most = 0;
#pragma unroll
    for (int n = 0; n < D / 8; ++n)
      most = fmaxf(most, fmaxf(fabsf(out[n * 4 + 2 * i]), fabsf(out[n * 4 + 2 * i + 1])));
    const Fp8Scale block = Fp8Scale::coarse(shared_top(most) * scale);
    const float factor = scale * block.inverse;
    const int64_t row = to_row[i];
    if (row >= 0 && lane % 4 == 0) tensors.out8.blocks[row * layout.heads + head] = block.scale;
    e4m3* to = tensors.out8.values + (row * layout.heads + head) * D;
#pragma unroll
    for (int n = 0; n < D / 8; n += 8) {
      // Two neighbouring chunks of 8 columns in the halves of each piece.
      uint32_t piece[4];
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        const int at = (n + 2 * j) * 4 + 2 * i;
        piece[j] = pack_e4m3(out[at] * factor, out[at + 1] * factor) |
                   pack_e4m3(out[at + 4] * factor, out[at + 5] * factor) << 16;
      }
      transpose4(piece, lane);
      if (row >= 0)
        *reinterpret_cast<uint4*>(to + (n + lane % 4 * 2) * 8) =
            make_uint4(__byte_perm(piece[0], piece[1], 0x5410), __byte_perm(piece[2], piece[3], 0x5410),
                       __byte_perm(piece[0], piece[1], 0x7632), __byte_perm(piece[2], piece[3], 0x7632));
    }
  }

  __device__ void write(const AttentionItem& item, int kv_head, int m0) {
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      float total = sum[i];
      total += __shfl_xor_sync(0xffffffffu, total, 1);
      total += __shfl_xor_sync(0xffffffffu, total, 2);
      const float scale = total > 0 ? (kNarrow ? value_scale : 1.0f) / total : 0.0f;
      const int m = m0 + 8 * i;
      const bool valid = to_row[i] >= 0;
      if (item.first_partial < 0 && tensors.out8.values != nullptr) {
        if constexpr (D == kFp8Block) write_narrow(i, scale, kv_head * group + m % group);
        continue;
      }
      if (item.first_partial < 0) {
        bf16* to =
            tensors.out + (int64_t{to_row[i]} * layout.heads + kv_head * group + m % group) * layout.head_dim;
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
#endif

}  // namespace
}  // namespace sheaf::cuda
