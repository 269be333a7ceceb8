// Embeddings, the gate where no product applies it, and the order and filling of weights.
#include <type_traits>

#include "cuda/base/device_math.h"
#include "cuda/ops/gates.h"
#include "cuda/ops/ops.h"

namespace sheaf::cuda {
namespace {

constexpr int kThreads = 256;

/// `table` [vocab, hidden], `tokens` [rows], `x` [rows, hidden]: a block a row.
__global__ void embed_kernel(const bf16* table, const int32_t* tokens, int32_t hidden, float* x) {
  const bf16* in = table + int64_t{tokens[blockIdx.x]} * hidden;
  float* out = x + int64_t{blockIdx.x} * hidden;
  for (int i = threadIdx.x; i < hidden; i += blockDim.x) out[i] = __bfloat162float(in[i]);
}

/// `gate_up` [rows, 2 ffn], `out` [rows, ffn]; `count` is rows × ffn.
template <Activation activation, class In>
__global__ void apply_gates_kernel(const In* gate_up, int64_t count, bf16* out) {
  // Eight values a thread: a group of gate and the group of up beside it.
  const int64_t at = (int64_t{blockIdx.x} * blockDim.x + threadIdx.x) * 8;
  if (at >= count) return;
  alignas(16) float gate[8], up[8];
  eight_at(gate_up + at * 2, gate);
  eight_at(gate_up + at * 2 + 8, up);
  uint4 bits;
  auto* result = reinterpret_cast<__nv_bfloat162*>(&bits);
#pragma unroll
  for (int j = 0; j < 8; j += 2)
    result[j / 2] =
        __floats2bfloat162_rn(gated<activation>(gate[j], up[j]), gated<activation>(gate[j + 1], up[j + 1]));
  *reinterpret_cast<uint4*>(out + at) = bits;
}

/// `values` [rows, cols], `bias` [cols]: a block a row.
__global__ void add_bias_kernel(float* values, const float* bias, int32_t cols) {
  float* row = values + int64_t{blockIdx.x} * cols;
  for (int i = threadIdx.x; i < cols; i += kThreads) row[i] += bias[i];
}

__global__ void scale_kernel(float* values, int64_t count, float scale, float cap) {
  const int64_t at = int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (at >= count) return;
  const float scaled = values[at] * scale;
  values[at] = cap > 0 ? cap * tanhf(scaled / cap) : scaled;
}

/// `halves` [2, rows, cols], `out` [2 rows, cols]: a block a row.
template <class T>
__global__ void interleave_kernel(const T* halves, int64_t rows, int64_t cols, T* out) {
  constexpr RowOrder order = std::is_same_v<T, bf16> ? RowOrder::by_eights : RowOrder::by_sixteens;
  const int64_t row = blockIdx.x;
  const int64_t to = interleaved(order, row % rows) + (row < rows ? 0 : 8);
  for (int64_t i = threadIdx.x; i < cols; i += blockDim.x) out[to * cols + i] = halves[row * cols + i];
}

/// `in` and `values` [rows, cols], `scales` [rows]: a block a row.
__global__ void round_weights_kernel(const bf16* in, int64_t cols, e4m3* values, float* scales) {
  const bf16* row = in + blockIdx.x * cols;
  __shared__ unsigned int most;  // positive floats sort as their bits do
  if (threadIdx.x == 0) most = 0;
  __syncthreads();
  float own = 0;
  for (int64_t i = threadIdx.x; i < cols; i += blockDim.x) own = fmaxf(own, fabsf(__bfloat162float(row[i])));
  atomicMax(&most, __float_as_uint(own));
  __syncthreads();
  const Fp8Scale scale = Fp8Scale::fine(__uint_as_float(most));
  for (int64_t i = threadIdx.x; i < cols; i += blockDim.x)
    values[blockIdx.x * cols + i].__x =
        static_cast<uint8_t>(pack_e4m3(__bfloat162float(row[i]) * scale.inverse, 0));
  if (threadIdx.x == 0) scales[blockIdx.x] = scale.scale;
}

__device__ uint64_t scramble(uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

/// `out` [count].
__global__ void fill_random_kernel(bf16* out, int64_t count, float spread, uint64_t seed) {
  const int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (i >= count) return;
  const uint64_t bits = scramble(seed + 0x9e3779b97f4a7c15u * static_cast<uint64_t>(i + 1));
  const float u = (static_cast<float>(bits >> 40) + 1.0f) * 0x1p-24f;
  const float v = static_cast<float>((bits >> 8) & 0xffffff) * 0x1p-24f;
  out[i] = __float2bfloat16(spread * sqrtf(-2.0f * __logf(u)) * __cosf(6.2831853f * v));
}

unsigned blocks_for(int64_t count) {
  return static_cast<unsigned>((count + kThreads - 1) / kThreads);
}

}  // namespace

void embed(const bf16* table, const int32_t* tokens, int32_t rows, int32_t hidden, float* x,
           cudaStream_t stream) {
  embed_kernel<<<rows, kThreads, 0, stream>>>(table, tokens, hidden, x);
}

template <class In>
void apply_gates(Activation activation, const In* gate_up, int32_t rows, int32_t ffn, bf16* out,
                 cudaStream_t stream) {
  const int64_t count = int64_t{rows} * ffn;
  const auto kernel = activation == Activation::silu        ? apply_gates_kernel<Activation::silu, In>
                      : activation == Activation::gelu_tanh ? apply_gates_kernel<Activation::gelu_tanh, In>
                                                            : apply_gates_kernel<Activation::clamped, In>;
  kernel<<<blocks_for(count / 8), kThreads, 0, stream>>>(gate_up, count, out);
}
template void apply_gates(Activation, const bf16*, int32_t, int32_t, bf16*, cudaStream_t);
template void apply_gates(Activation, const float*, int32_t, int32_t, bf16*, cudaStream_t);

void add_bias(float* values, const float* bias, int32_t rows, int32_t cols, cudaStream_t stream) {
  add_bias_kernel<<<rows, kThreads, 0, stream>>>(values, bias, cols);
}

void scale_rows(float* values, int64_t count, float scale, float cap, cudaStream_t stream) {
  scale_kernel<<<blocks_for(count), kThreads, 0, stream>>>(values, count, scale, cap);
}

template <class T>
void interleave_rows(const T* halves, int64_t rows, int64_t cols, T* out, cudaStream_t stream) {
  interleave_kernel<<<static_cast<unsigned>(2 * rows), kThreads, 0, stream>>>(halves, rows, cols, out);
}
template void interleave_rows(const bf16*, int64_t, int64_t, bf16*, cudaStream_t);
template void interleave_rows(const e4m3*, int64_t, int64_t, e4m3*, cudaStream_t);
template void interleave_rows(const float*, int64_t, int64_t, float*, cudaStream_t);

void round_weights(const bf16* in, int64_t rows, int64_t cols, e4m3* values, float* scales,
                   cudaStream_t stream) {
  round_weights_kernel<<<static_cast<unsigned>(rows), kThreads, 0, stream>>>(in, cols, values, scales);
}

void fill_random(bf16* out, int64_t count, float spread, uint64_t seed, cudaStream_t stream) {
  fill_random_kernel<<<blocks_for(count), kThreads, 0, stream>>>(out, count, spread, seed);
}

}  // namespace sheaf::cuda
