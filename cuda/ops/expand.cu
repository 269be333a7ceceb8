// Rows of quantized blocks, as model files store them, to bf16 or e4m3. The arithmetic is
// core/model/dtype.cc's: the same bits come out. A thread makes eight values, 16 bytes of bf16,
// so that a warp writes 512 bytes in a row.
#include <cmath>
#include <type_traits>

#include "core/model/scaled_blocks.h"
#include "cuda/base/device_math.h"
#include "cuda/ops/ops.h"

namespace sheaf::cuda {
namespace {

constexpr int kThreads = 256;

__device__ uint32_t two_bytes(const uint8_t* at) {
  return *reinterpret_cast<const uint16_t*>(at);
}
__device__ float half_at(const uint8_t* at) {
  return __half2float(*reinterpret_cast<const __half*>(at));
}
/// Byte i of eight that lie at an even address.
struct EightBytes {
  uint32_t words[2];
  __device__ explicit EightBytes(const uint8_t* at)
      : words{two_bytes(at) | two_bytes(at + 2) << 16, two_bytes(at + 4) | two_bytes(at + 6) << 16} {}
  __device__ int operator[](int i) const { return static_cast<int>(words[i / 4] >> i % 4 * 8 & 255); }
};

template <DType type>
using Type = std::integral_constant<DType, type>;

// decode() makes the values [first, first + 8) of a row; `first` is a multiple of 8.

__device__ void decode(Type<DType::f32>, const uint8_t* row, int first, float (&out)[8]) {
  for (int i = 0; i < 8; ++i) out[i] = reinterpret_cast<const float*>(row)[first + i];
}
__device__ void decode(Type<DType::f16>, const uint8_t* row, int first, float (&out)[8]) {
  for (int i = 0; i < 8; ++i) out[i] = half_at(row + 2 * (first + i));
}
__device__ void decode(Type<DType::bf16>, const uint8_t* row, int first, float (&out)[8]) {
  for (int i = 0; i < 8; ++i) out[i] = __uint_as_float(two_bytes(row + 2 * (first + i)) << 16);
}
__device__ void decode(Type<DType::q8_0>, const uint8_t* row, int first, float (&out)[8]) {
  const uint8_t* block = row + first / 32 * 34;
  const float d = half_at(block);
  const EightBytes quants(block + 2 + first % 32);
#pragma unroll
  for (int i = 0; i < 8; ++i) out[i] = d * static_cast<float>(static_cast<int8_t>(quants[i]));
}
__device__ void decode(Type<DType::q4_0>, const uint8_t* row, int first, float (&out)[8]) {
  const uint8_t* block = row + first / 32 * 18;
  const float d = half_at(block);
  const EightBytes pairs(block + 2 + first % 16);
  const int shift = first % 32 / 16 * 4;
#pragma unroll
  for (int i = 0; i < 8; ++i) out[i] = d * static_cast<float>((pairs[i] >> shift & 15) - 8);
}
__device__ void decode(Type<DType::q4_1>, const uint8_t* row, int first, float (&out)[8]) {
  const uint8_t* block = row + first / 32 * 20;
  const float d = half_at(block), m = half_at(block + 2);
  const EightBytes pairs(block + 4 + first % 16);
  const int shift = first % 32 / 16 * 4;
#pragma unroll
  for (int i = 0; i < 8; ++i) out[i] = d * static_cast<float>(pairs[i] >> shift & 15) + m;
}
__device__ void decode(Type<DType::q5_0>, const uint8_t* row, int first, float (&out)[8]) {
  const uint8_t* block = row + first / 32 * 22;
  const float d = half_at(block);
  const int high = block[2 + first % 32 / 8];
  const EightBytes pairs(block + 6 + first % 16);
  const int shift = first % 32 / 16 * 4;
#pragma unroll
  for (int i = 0; i < 8; ++i)
    out[i] = d * static_cast<float>(((pairs[i] >> shift & 15) | (high >> i & 1) << 4) - 16);
}

/// Step and floor of one of the eight groups of 32 of a block of Q4_K or Q5_K.
struct GroupScale {
  float step, floor;
  __device__ GroupScale(const uint8_t* block, int group) {
    const uint8_t* packed = block + 4;
    int scale, min;
    if (group < 4) {
      scale = packed[group] & 63;
      min = packed[group + 4] & 63;
    } else {
      const int low = packed[group + 4];
      scale = (low & 15) | packed[group - 4] >> 6 << 4;
      min = low >> 4 | packed[group] >> 6 << 4;
    }
    step = half_at(block) * static_cast<float>(scale);
    floor = half_at(block + 2) * static_cast<float>(min);
  }
};
template <DType type>
__device__ std::enable_if_t<type == DType::q4_k || type == DType::q5_k> decode(Type<type>, const uint8_t* row,
                                                                               int first, float (&out)[8]) {
  constexpr bool fifth = type == DType::q5_k;  // has a fifth bit of every value before the others
  const uint8_t* block = row + first / 256 * (fifth ? 176 : 144);
  const int group = first % 256 / 32;
  const GroupScale scale(block, group);
  const EightBytes high(block + 16 + first % 32),
      quants(block + (fifth ? 48 : 16) + group / 2 * 32 + first % 32);
#pragma unroll
  for (int i = 0; i < 8; ++i) {
    const int low = quants[i] >> group % 2 * 4 & 15, quant = fifth ? low | (high[i] >> group & 1) << 4 : low;
    out[i] = scale.step * static_cast<float>(quant) - scale.floor;
  }
}
__device__ void decode(Type<DType::q6_k>, const uint8_t* row, int first, float (&out)[8]) {
  const uint8_t* block = row + first / 256 * 210;
  const int half = first % 256 / 128, inside = first % 128, lane = inside % 32, quarter = inside / 32;
  const EightBytes low(block + half * 64 + lane + quarter % 2 * 32), high(block + 128 + half * 32 + lane);
  const float step =
      half_at(block + 208) * static_cast<float>(static_cast<int8_t>(block[192 + half * 8 + inside / 16]));
#pragma unroll
  for (int i = 0; i < 8; ++i) {
    const int quant = ((low[i] >> quarter / 2 * 4 & 15) | (high[i] >> quarter * 2 & 3) << 4) - 32;
    out[i] = step * static_cast<float>(quant);
  }
}

// Blocks of core/model/scaled_blocks.h.

__device__ uint32_t word_of(const uint8_t* at) {
  return *reinterpret_cast<const uint32_t*>(at);
}
template <DType type>
__device__ std::enable_if_t<is_e4m3(type)> decode(Type<type>, const uint8_t* row, int first,
                                                  float (&out)[8]) {
  constexpr int values = type == DType::e4m3_32 ? 32 : 128;
  const uint8_t* block = row + first / values * (values + 4);
  const float scale = __uint_as_float(word_of(block));
  const uint8_t* bytes = block + 4 + first % values;
  const uint32_t words[2] = {word_of(bytes), word_of(bytes + 4)};
#pragma unroll
  for (int i = 0; i < 8; i += 2) {
    const float2 pair = unpack_e4m3(words[i / 4] >> i % 4 * 8 & 0xffff);
    out[i] = scale * pair.x;
    out[i + 1] = scale * pair.y;
  }
}

template <DType type>
__device__ std::enable_if_t<type == DType::int4_32 || type == DType::int4_128> decode(Type<type>,
                                                                                      const uint8_t* row,
                                                                                      int first,
                                                                                      float (&out)[8]) {
  constexpr int values = type == DType::int4_32 ? 32 : 128;
  const uint8_t* block = row + first / values * (values / 2 + 4);
  const uint32_t header = word_of(block);
  const float scale = __uint_as_float(header & ~kZeroPointBits);
  const int zero = static_cast<int>(header & kZeroPointBits);
  const uint32_t word = word_of(block + 4 + first % values / 2);
#pragma unroll
  for (int i = 0; i < 8; ++i)
    out[i] = scale * static_cast<float>(static_cast<int>(word >> 4 * i & 15) - zero);
}

__device__ const Nf4 nf4 = kNf4;
__device__ void decode(Type<DType::nf4>, const uint8_t* row, int first, float (&out)[8]) {
  const uint8_t* block = row + first / 64 * 36;
  const float scale = __uint_as_float(word_of(block));
  const uint32_t word = word_of(block + 4 + first % 64 / 2);
#pragma unroll
  for (int i = 0; i < 8; ++i) out[i] = scale * nf4.values[word >> 4 * i & 15];
}

/// Steps and floors of 16 values each.
__device__ void decode(Type<DType::q2_k>, const uint8_t* row, int first, float (&out)[8]) {
  const uint8_t* block = row + first / 256 * 84;
  const int group = first % 256 / 16, in_half = group % 8, packed = block[group];
  const float step = half_at(block + 80) * static_cast<float>(packed & 15),
              floor = half_at(block + 82) * static_cast<float>(packed >> 4);
  const EightBytes quants(block + 16 + group / 8 * 32 + in_half % 2 * 16 + first % 16);
#pragma unroll
  for (int i = 0; i < 8; ++i) out[i] = step * static_cast<float>(quants[i] >> in_half / 2 * 2 & 3) - floor;
}
/// Steps of 16 values each; the third bits of all values come first.
__device__ void decode(Type<DType::q3_k>, const uint8_t* row, int first, float (&out)[8]) {
  const uint8_t* block = row + first / 256 * 110;
  const int group = first % 256 / 16, in_half = group % 8, low_bits = in_half / 2;
  const int low = block[96 + group % 8] >> group / 8 * 4 & 15,
            high = block[96 + 8 + group % 4] >> group / 4 * 2 & 3;
  const float step = half_at(block + 108) * static_cast<float>((low | high << 4) - 32);
  const int place = in_half % 2 * 16 + first % 16;
  const EightBytes thirds(block + place), quants(block + 32 + group / 8 * 32 + place);
#pragma unroll
  for (int i = 0; i < 8; ++i) {
    const int third = thirds[i] >> (group / 8 * 4 + low_bits) & 1;
    out[i] = step * static_cast<float>(((quants[i] >> low_bits * 2 & 3) | third << 2) - 4);
  }
}

/// What four bits of IQ4_NL and IQ4_XS stand for.
__device__ const int8_t iq4_values[16] = {-127, -104, -83, -65, -49, -35, -22, -10,
                                          1,    13,   25,  38,  53,  69,  89,  113};
__device__ void decode(Type<DType::iq4_nl>, const uint8_t* row, int first, float (&out)[8]) {
  const uint8_t* block = row + first / 32 * 18;
  const float step = half_at(block);
  const EightBytes pairs(block + 2 + first % 16);
  const int shift = first % 32 / 16 * 4;
#pragma unroll
  for (int i = 0; i < 8; ++i) out[i] = step * static_cast<float>(iq4_values[pairs[i] >> shift & 15]);
}
__device__ void decode(Type<DType::iq4_xs>, const uint8_t* row, int first, float (&out)[8]) {
  const uint8_t* block = row + first / 256 * 136;
  const int group = first % 256 / 32;
  const int low = block[4 + group / 2] >> group % 2 * 4 & 15,
            high = static_cast<int>(two_bytes(block + 2)) >> group * 2 & 3;
  const float step = half_at(block) * static_cast<float>((low | high << 4) - 32);
  const EightBytes pairs(block + 8 + group * 16 + first % 16);
  const int shift = first % 32 / 16 * 4;
#pragma unroll
  for (int i = 0; i < 8; ++i) out[i] = step * static_cast<float>(iq4_values[pairs[i] >> shift & 15]);
}

/// E2M1 codes and a power of two, 17 bytes together, so that nothing is aligned.
__device__ void decode(Type<DType::mxfp4>, const uint8_t* row, int first, float (&out)[8]) {
  const uint8_t* block = row + first / 32 * 17;
  const uint32_t scale = block[0];
  // Half of the scale, which is subnormal for the two smallest; 255 is NaN.
  const float half = __uint_as_float(scale == 255 ? 0x7fc00000u
                                     : scale < 2  ? 0x00200000u << scale
                                                  : (scale - 1) << 23);
  const uint8_t* pairs = block + 1 + first % 16;
  const int shift = first % 32 / 16 * 4;
#pragma unroll
  for (int i = 0; i < 8; ++i) {
    // Twice the value: 0, 1, 2, 3, 4, 6, 8, 12, which are the digits of this number, and a sign.
    const int code = pairs[i] >> shift & 15, twice = static_cast<int>(0xc8643210u >> code % 8 * 4 & 15);
    out[i] = half * static_cast<float>(code < 8 ? twice : -twice);
  }
}

/// Adds an adapter to the values [first, first + 8) of a row as Matrix::read() does on the host: there a
/// product is rounded before it is added, except where the compiler has an instruction for both.
__device__ void add_adapter(const LowRankRows& adapter, int64_t row, int32_t cols, int first, float (&v)[8]) {
  for (int k = 0; k < adapter.rank; ++k) {
    const float by = adapter.b[row * adapter.rank + k];
    const float* a = adapter.a + int64_t{k} * cols + first;
#pragma unroll
    for (int i = 0; i < 8; ++i)
#ifdef __aarch64__
      v[i] = __fmaf_rn(by, a[i], v[i]);
#else
      v[i] = __fadd_rn(v[i], __fmul_rn(by, a[i]));
#endif
  }
}

/// Whether the step needs a row.
__device__ bool wanted(const ExpertRows& experts, int64_t row) {
  if (!experts.offsets) return true;
  const int64_t expert = row / experts.each;
  return experts.offsets[expert] < experts.offsets[expert + 1];
}

__device__ int64_t placed(const RowPlace& place, int64_t row) {
  return place.order == RowOrder::plain ? place.first + row : interleaved(place.order, row) + place.first;
}

/// `in` [rows] of `row_bytes`, `out` [any rows, cols]: a block a row.
template <DType type>
__global__ void expand_kernel(const uint8_t* in, int64_t row_bytes, int32_t cols, LowRankRows adapter,
                              ExpertRows experts, RowPlace place, bf16* out) {
  if (!wanted(experts, blockIdx.x)) return;
  const uint8_t* row = in + blockIdx.x * row_bytes;
  auto* to = reinterpret_cast<uint4*>(out + placed(place, blockIdx.x) * cols);
  for (int i = threadIdx.x; i * 8 < cols; i += kThreads) {
    float v[8];
    decode(Type<type>{}, row, i * 8, v);
    add_adapter(adapter, blockIdx.x, cols, i * 8, v);
    to[i] = make_uint4(pack(v[0], v[1]), pack(v[2], v[3]), pack(v[4], v[5]), pack(v[6], v[7]));
  }
}

/// `x` [rows, cols] = the rows of `in` that `tokens` [rows] name: a block a row.
template <DType type>
__global__ void embed_kernel(const uint8_t* in, int64_t row_bytes, int32_t cols, const int32_t* tokens,
                             float* x) {
  const uint8_t* row = in + tokens[blockIdx.x] * row_bytes;
  auto* to = reinterpret_cast<float4*>(x + int64_t{blockIdx.x} * cols);
  for (int i = threadIdx.x; i * 8 < cols; i += kThreads) {
    float v[8];
    decode(Type<type>{}, row, i * 8, v);
    // As a table of bf16 would have them.
    for (float& value : v) value = __bfloat162float(__float2bfloat16(value));
    to[2 * i] = make_float4(v[0], v[1], v[2], v[3]);
    to[2 * i + 1] = make_float4(v[4], v[5], v[6], v[7]);
  }
}

/// As expand_kernel(), `peaks` [any rows] being the largest absolute values of the rows of `out`.
template <DType type>
__global__ void expand_narrow_kernel(const uint8_t* in, int64_t row_bytes, int32_t cols, LowRankRows adapter,
                                     ExpertRows experts, RowPlace place, const float* peaks, e4m3* out) {
  if (!wanted(experts, blockIdx.x)) return;
  const uint8_t* row = in + blockIdx.x * row_bytes;
  const int64_t at = placed(place, blockIdx.x);
  const float inverse = Fp8Scale::fine(peaks[at]).inverse;
  auto* to = reinterpret_cast<uint2*>(out + at * cols);
  for (int i = threadIdx.x; i * 8 < cols; i += kThreads) {
    float v[8];
    decode(Type<type>{}, row, i * 8, v);
    add_adapter(adapter, blockIdx.x, cols, i * 8, v);
    const auto four = [&](int j) {
      return pack_e4m3(v[j] * inverse, v[j + 1] * inverse) | pack_e4m3(v[j + 2] * inverse, v[j + 3] * inverse)
                                                                 << 16;
    };
    to[i] = make_uint2(four(0), four(4));
  }
}

/// What a row of the largest value `most` is divided by on its way to e4m3, as Fp8Scale::fine() sees it. A
/// row of MXFP4 gets a power of two that makes its largest value 256 or 384, so that all its values are exact
/// down to 2^-17 of that.
template <DType type>
__device__ float peak_of(float most) {
  if constexpr (type != DType::mxfp4) return most;
  return most == 0 ? 0.0f : __uint_as_float((__float_as_uint(most) & 0x7f800000u) | 0x00600000u);
}

template <DType type>
__global__ void peaks_kernel(const uint8_t* in, int64_t row_bytes, int32_t cols, LowRankRows adapter,
                             RowPlace place, float* peaks, float* scales) {
  const uint8_t* row = in + blockIdx.x * row_bytes;
  __shared__ unsigned int most;  // positive floats sort as their bits do
  if (threadIdx.x == 0) most = 0;
  __syncthreads();
  float own = 0;
  for (int i = threadIdx.x; i * 8 < cols; i += kThreads) {
    float v[8];
    decode(Type<type>{}, row, i * 8, v);
    add_adapter(adapter, blockIdx.x, cols, i * 8, v);
    for (const float value : v) own = fmaxf(own, fabsf(value));
  }
  atomicMax(&most, __float_as_uint(own));
  __syncthreads();
  if (threadIdx.x > 0) return;
  const int64_t at = placed(place, blockIdx.x);
  peaks[at] = peak_of<type>(__uint_as_float(most));
  scales[at] = Fp8Scale::fine(peaks[at]).scale;
}

/// Adds to `count` [1] the rows that do not come back from e4m3 as they were: a block a row.
template <DType type>
__global__ void count_rounded_kernel(const uint8_t* in, int64_t row_bytes, int32_t cols, RowPlace place,
                                     const float* peaks, int32_t* count) {
  const uint8_t* row = in + blockIdx.x * row_bytes;
  const Fp8Scale scale = Fp8Scale::fine(peaks[placed(place, blockIdx.x)]);
  bool rounds = false;
  for (int i = threadIdx.x; i * 8 < cols; i += kThreads) {
    float v[8];
    decode(Type<type>{}, row, i * 8, v);
#pragma unroll
    for (int j = 0; j < 8; j += 2) {
      const float2 back = unpack_e4m3(pack_e4m3(v[j] * scale.inverse, v[j + 1] * scale.inverse));
      rounds = rounds || back.x * scale.scale != v[j] || back.y * scale.scale != v[j + 1];
    }
  }
  if (__syncthreads_or(rounds) != 0 && threadIdx.x == 0) atomicAdd(count, 1);
}

/// Calls `run` with the type as a constant.
template <int at = 0, class Run>
void with_type(DType type, const Run& run) {
  if (static_cast<DType>(at) == type)
    run(Type<static_cast<DType>(at)>{});
  else if constexpr (static_cast<DType>(at) != DType::iq4_xs)
    with_type<at + 1>(type, run);
}

__device__ uint32_t scrambled(uint32_t x) {
  x = (x ^ x >> 16) * 0x85ebca6bu;
  x = (x ^ x >> 13) * 0xc2b2ae35u;
  return x ^ x >> 16;
}

/// `out` [blocks] of MXFP4 whose scales are 2^(power - 1) to 2^(power + 2), the middle ones thrice as often.
__global__ void random_mxfp4_kernel(uint8_t* out, int64_t blocks, int power, uint32_t seed) {
  const int64_t block = int64_t{blockIdx.x} * kThreads + threadIdx.x;
  if (block >= blocks) return;
  uint8_t* to = out + block * 17;
  const uint32_t first = seed + static_cast<uint32_t>(block) * 5u, dice = scrambled(first);
  to[0] = static_cast<uint8_t>(127 + power - 1 + (dice & 1) + (dice >> 1 & 1) + (dice >> 2 & 1));
  for (int i = 0; i < 4; ++i) {
    const uint32_t codes = scrambled(first + 1u + static_cast<uint32_t>(i));
    for (int j = 0; j < 4; ++j) to[1 + 4 * i + j] = static_cast<uint8_t>(codes >> 8 * j);
  }
}

/// `out` [blocks] of Q4_K: values from -7.5 to 7.5 steps.
__global__ void random_blocks_kernel(uint8_t* out, int64_t blocks, __half step, __half half_range,
                                     uint32_t seed) {
  const int64_t block = int64_t{blockIdx.x} * kThreads + threadIdx.x;
  if (block >= blocks) return;
  auto* words = reinterpret_cast<uint32_t*>(out + block * 144);
  words[0] = __half_as_ushort(step) | static_cast<uint32_t>(__half_as_ushort(half_range)) << 16;
  words[1] = words[2] = 0x01010101u;  // four scales, then four minima: one step each
  words[3] = 0x11111111u;             // and those of the other four groups
  for (int i = 0; i < 32; ++i) words[4 + i] = scrambled(seed + static_cast<uint32_t>(block) * 32u + i);
}

}  // namespace

void expand_rows(const PackedRows& in, const RowPlace& place, bf16* out, cudaStream_t stream) {
  expand_experts(in, {}, place, out, stream);
}

void expand_rows(const PackedRows& in, const RowPlace& place, const float* peaks, e4m3* out,
                 cudaStream_t stream) {
  expand_experts(in, {}, place, peaks, out, stream);
}

void expand_experts(const PackedRows& in, const ExpertRows& experts, const RowPlace& place, bf16* out,
                    cudaStream_t stream) {
  with_type(in.type, [&](auto type) {
    expand_kernel<type()><<<static_cast<unsigned>(in.rows), kThreads, 0, stream>>>(
        in.data, in.row_bytes, in.cols, in.adapter, experts, place, out);
  });
}

void expand_experts(const PackedRows& in, const ExpertRows& experts, const RowPlace& place,
                    const float* peaks, e4m3* out, cudaStream_t stream) {
  with_type(in.type, [&](auto type) {
    expand_narrow_kernel<type()><<<static_cast<unsigned>(in.rows), kThreads, 0, stream>>>(
        in.data, in.row_bytes, in.cols, in.adapter, experts, place, peaks, out);
  });
}

void embed(const PackedRows& table, const int32_t* tokens, int32_t rows, float* x, cudaStream_t stream) {
  with_type(table.type, [&](auto type) {
    embed_kernel<type()><<<rows, kThreads, 0, stream>>>(table.data, table.row_bytes, table.cols, tokens, x);
  });
}

void find_peaks(const PackedRows& in, const RowPlace& place, float* peaks, float* scales,
                cudaStream_t stream) {
  with_type(in.type, [&](auto type) {
    peaks_kernel<type()><<<static_cast<unsigned>(in.rows), kThreads, 0, stream>>>(
        in.data, in.row_bytes, in.cols, in.adapter, place, peaks, scales);
  });
}

void count_rounded(const PackedRows& in, const RowPlace& place, const float* peaks, int32_t* count,
                   cudaStream_t stream) {
  count_rounded_kernel<DType::mxfp4><<<static_cast<unsigned>(in.rows), kThreads, 0, stream>>>(
      in.data, in.row_bytes, in.cols, place, peaks, count);
}

void fill_random_mxfp4(uint8_t* out, int64_t blocks, float spread, uint64_t seed, cudaStream_t stream) {
  // Sixteen equally likely codes have a standard deviation of 2.93, and such scales of 1.98 times 2^power.
  const int power = static_cast<int>(std::lround(std::log2(spread / 5.78f)));
  random_mxfp4_kernel<<<static_cast<unsigned>((blocks + kThreads - 1) / kThreads), kThreads, 0, stream>>>(
      out, blocks, power, static_cast<uint32_t>(seed));
}

void fill_random_q4_k(uint8_t* out, int64_t blocks, float spread, uint64_t seed, cudaStream_t stream) {
  // Sixteen equally likely values one step apart have a standard deviation of 4.61 steps.
  const float step = spread / 4.61f;
  random_blocks_kernel<<<static_cast<unsigned>((blocks + kThreads - 1) / kThreads), kThreads, 0, stream>>>(
      out, blocks, __float2half(step), __float2half(7.5f * step), static_cast<uint32_t>(seed));
}

}  // namespace sheaf::cuda
