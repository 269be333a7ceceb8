#pragma once
#include "cuda/attention/hopper_products.h"
#include "cuda/attention/hopper_softmax.h"
#include "cuda/attention/sinks.h"

/// What a warpgroup of the Hopper kernel computes. Its policies: the softmax (hopper_softmax.h), what happens
/// to scores before (hopper_scores.h), and which keys a row sees (hopper_sight.h).
namespace sheaf::cuda {
namespace {

#if defined(__CUDA_ARCH_FEAT_SM90_ALL)

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

template <class Softmax, int D, int kGroups, class Scores, class Sight>
struct Consumer {
  using T = typename Softmax::Number;
  using Memory = Shared<T, D, kGroups>;
  using Multiply = AttentionProducts<T>;
  static constexpr int kKeys = Memory::kKeys;
  static constexpr int kPages = kKeys / kPage;
  static constexpr int kDepth = Multiply::kDepth;
  static constexpr int kScores = kKeys / 2, kOut = D / 2;  // registers of a thread

  const AttentionInputs& in;
  const HeadLayout& layout;
  const AttentionTensors& tensors;
  Memory& memory;
  int group_index, warp, lane, group;
  RingPlace q_place, k_place, v_place;

  float out[kOut];
  float score[kScores];
  Softmax softmax;
  Scores scores;
  int row[2];     // of this thread's queries, as pages count rows
  int to_row[2];  // where their results go, -1: nowhere
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
      Multiply::keys(score, a, b, step != 0);
    }
    products_commit();
  }

  __device__ uint64_t value_tile() const {
    return Multiply::template value_tile<D>(&memory.v[v_place.at][0][0][0], kKeys);
  }
  /// One product of the stage at `v_tile`. In heads of 256, columns come in halves: one product for all would
  /// need more registers at once than a thread is launched with.
  __device__ void multiply_values(const uint32_t (&weights)[4], uint64_t v_tile, int step, bool add) {
    const uint64_t v = v_tile + step * Multiply::template kValueStep<D>;
    if constexpr (D <= 128) {
      Multiply::values(out, weights, v, add);
    } else {
      using Half = float[kOut / 2];
      Multiply::values(reinterpret_cast<Half&>(out[0]), weights, v, add);
      Multiply::values(reinterpret_cast<Half&>(out[kOut / 2]), weights, v + Multiply::half_step(kKeys), add);
    }
  }
  __device__ void multiply_values(const Weights& p, bool add) {
    const uint64_t v_tile = value_tile();
#pragma unroll
    for (int step = 0; step < kKeys / kDepth; ++step)
      multiply_values(p[step], v_tile, step, add || step != 0);
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

  /// A stage in which a base moves for some warp: page by page, the sums of before shrunk where it does.
  /// `mine`: for this one; else its weights are in p already.
  __device__ void add_page_by_page(Weights& p, bool mine) {
    const uint64_t v_tile = value_tile();
#pragma unroll
    for (int page = 0; page < kPages; ++page) {
      if (mine) {
        if (softmax.move_bases(score, page)) softmax.shrink_sums(out);
        softmax.soften_page(score, page);
        Multiply::pack(score, page, p[page]);
      }
      pin(out);
      products_begin();
      multiply_values(p[page], v_tile, page, true);
      products_commit();
      products_wait<0>();
      pin(out);
    }
  }

  __device__ void weights(Weights& p) const {
#pragma unroll
    for (int k = 0; k < kKeys / kDepth; ++k) Multiply::pack(score, k, p[k]);
  }

  /// Nothing is summed up yet. Returns this thread's first query.
  __device__ int begin(const AttentionItem& item, int kv_head) {
    const int m = group_index * 64 + warp * 16 + lane / 4;
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const int at = (m + 8 * i) / group;
      row[i] = item.row_offset + at;
      to_row[i] = at < item.row_count ? in.rows[item.first_row + at] : -1;
    }
    sight.begin(in, to_row);
    softmax.begin(tensors, layout, kv_head, group, m);
    scores.begin(layout, softmax);
    return m;
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
    scores.apply(score);
    mask(item, page);
    softmax.soften(score);
    weights(p);
    int summed = 0;  // stages whose weighted values are in `out`
    const auto folded = [this] { return &memory.folded[group_index * D / 8][threadIdx.x % 128]; };
    for (int stage = 1; stage < stages; ++stage) {
      page = next_page;
      next_page = page_at(item, stage + 1);
      barrier_wait(&memory.k_full[k_place.at], k_place.round);
      pin(score);
      products_begin();
      multiply_keys();
      if (stage > 1) softmax.before_values(out, summed, kKeys, folded);  // beside that product
      barrier_wait(&memory.v_full[v_place.at], v_place.round);
      pin(out);
      products_begin();
      multiply_values(p, summed > 0);
      products_wait<1>();
      pin(score);
      give_back(memory.k_empty, k_place);
      scores.apply(score);
      mask(item, page);
      softmax.soften(score);
      products_wait<0>();
      pin(out);
      give_back(memory.v_empty, v_place);
      ++summed;
      softmax.after_values(out);
      weights(p);
    }
    if (lane == 0) barrier_arrive(&memory.q_empty[q_place.at]);
    q_place.template step<Memory::kQueries>();
    if (stages > 1) softmax.before_values(out, summed, kKeys, folded);
    barrier_wait(&memory.v_full[v_place.at], v_place.round);
    pin(out);
    products_begin();
    multiply_values(p, summed > 0);
    products_wait<0>();
    pin(out);
    give_back(memory.v_empty, v_place);
    softmax.finish(out, folded);
    write(item, kv_head, m);
  }

  /// An item page by page, so that a result does not depend on the blocks around it (InOrderSoftmax).
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
      scores.apply(score);
      mask(item, page);
      const bool mine = softmax.find_bases(score);
      if (!mine) {
#pragma unroll
        for (int at = 0; at < kPages; ++at) softmax.soften_page(score, at);
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
    q_place.template step<Memory::kQueries>();
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
      float total = softmax.sum[i];
      total += __shfl_xor_sync(0xffffffffu, total, 1);
      total += __shfl_xor_sync(0xffffffffu, total, 2);
      float scale = total > 0 ? softmax.value_scale / total : 0.0f;
      if constexpr (Softmax::kSinks) {
        if (item.first_partial < 0) {
#pragma unroll
          for (int n = 0; n < D / 8; ++n) {
            out[n * 4 + 2 * i] *= scale;
            out[n * 4 + 2 * i + 1] *= scale;
          }
          scale = share_of_keys(1, softmax.sink[i], log_sum(softmax.high[i], total));
        }
      }
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
      if (lane % 4 == 0) tensors.partial_lse[query] = log_sum(softmax.high[i], total);
    }
  }
};
#endif

}  // namespace
}  // namespace sheaf::cuda
