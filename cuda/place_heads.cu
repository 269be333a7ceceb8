// Biases, q/k norms, rotary embedding and the write into the paged pool in one pass over q, k and v: reads and writes each
// value once, instead of a kernel and a round trip each. One block a row, one warp a head.
#include "cuda/ops.h"

namespace sheaf::cuda {
namespace {

constexpr int kWarps = 8;

__device__ float warp_sum(float value) {
  for (int offset = 16; offset > 0; offset /= 2) value += __shfl_xor_sync(0xffffffffu, value, offset);
  return value;
}

__global__ void place_heads_kernel(const bf16* qkv, const float* bias, const float* q_norm, const float* k_norm,
                                   const float* rope_freqs, const int32_t* positions, const int32_t* kv_slots,
                                   HeadLayout layout, bf16* q, bf16* keys, bf16* values) {
  extern __shared__ float shared[];
  const int row = blockIdx.x;
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const int d = layout.head_dim, half = layout.rotary_dim / 2;
  const int all_heads = layout.heads + 2 * layout.kv_heads;
  const bf16* in = qkv + int64_t{row} * all_heads * d;
  float* cosines = shared;                  // [half]
  float* sines = shared + half;             // [half]
  float* squares = shared + 2 * half;       // [2]: sums over the whole of q and of k
  float* scratch = squares + 2 + warp * d;  // one head

  for (int i = threadIdx.x; i < half; i += blockDim.x) {
    // In double precision up to the angle: positions times frequencies lose digits in fp32.
    const double angle = static_cast<double>(positions[row]) * static_cast<double>(rope_freqs[i]);
    const float reduced = static_cast<float>(angle - 6.283185307179586 * rint(angle / 6.283185307179586));
    cosines[i] = cosf(reduced) * layout.rope_scale;
    sines[i] = sinf(reduced) * layout.rope_scale;
  }
  if (threadIdx.x < 2) squares[threadIdx.x] = 0;
  __syncthreads();
  if (layout.norm == 2) {
    float sum_q = 0, sum_k = 0;
    for (int i = threadIdx.x; i < (layout.heads + layout.kv_heads) * d; i += blockDim.x) {
      const float v = __bfloat162float(in[i]) + (bias ? bias[i] : 0.0f);
      (i < layout.heads * d ? sum_q : sum_k) += v * v;
    }
    sum_q = warp_sum(sum_q);
    sum_k = warp_sum(sum_k);
    if (lane == 0) {
      atomicAdd(&squares[0], sum_q);
      atomicAdd(&squares[1], sum_k);
    }
    __syncthreads();
  }

  for (int head = warp; head < all_heads; head += kWarps) {
    const bool is_q = head < layout.heads;
    const bool is_k = !is_q && head < layout.heads + layout.kv_heads;
    float square = 0;
    for (int i = lane; i < d; i += 32) {
      const float v = __bfloat162float(in[head * d + i]) + (bias ? bias[head * d + i] : 0.0f);
      scratch[i] = v;
      square += v * v;
    }
    __syncwarp();
    if ((is_q || is_k) && layout.norm != 0) {
      const int own = is_q ? head : head - layout.heads;
      const float* weight = is_q ? q_norm : k_norm;
      float mean, scale;
      if (layout.norm == 1) {
        mean = warp_sum(square) / static_cast<float>(d);
      } else {
        mean = squares[is_q ? 0 : 1] / static_cast<float>((is_q ? layout.heads : layout.kv_heads) * d);
        weight += own * d;
      }
      scale = rsqrtf(mean + layout.eps);
      for (int i = lane; i < d; i += 32) scratch[i] *= scale * weight[i];
      __syncwarp();
    }
    if (is_q || is_k) {
      for (int i = lane; i < half; i += 32) {
        const float a = scratch[i], b = scratch[i + half];
        scratch[i] = a * cosines[i] - b * sines[i];
        scratch[i + half] = b * cosines[i] + a * sines[i];
      }
      __syncwarp();
    }
    bf16* out;
    float scale = 1.0f;
    if (is_q) {
      out = q + (int64_t{row} * layout.heads + head) * layout.padded_dim;
      scale = layout.query_scale;
    } else {
      const int own = (head - layout.heads) % layout.kv_heads;
      out = (is_k ? keys : values) + (int64_t{own} * layout.slots + kv_slots[row]) * layout.padded_dim;
    }
    for (int i = lane; i < layout.padded_dim; i += 32) out[i] = __float2bfloat16(i < d ? scratch[i] * scale : 0.0f);
    __syncwarp();
  }
}

}  // namespace

void place_heads(const bf16* qkv, const float* bias, const float* q_norm, const float* k_norm, const float* rope_freqs,
                 const int32_t* positions, const int32_t* kv_slots, int32_t rows, const HeadLayout& layout, bf16* q,
                 bf16* keys, bf16* values, cudaStream_t stream) {
  const size_t shared = sizeof(float) * static_cast<size_t>(layout.rotary_dim + 2 + kWarps * layout.head_dim);
  place_heads_kernel<<<rows, 32 * kWarps, shared, stream>>>(qkv, bias, q_norm, k_norm, rope_freqs, positions, kv_slots,
                                                            layout, q, keys, values);
}

}  // namespace sheaf::cuda
