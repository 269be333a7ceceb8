#pragma once
#include <algorithm>
#include <array>
#include <vector>

#include "core/model/model.h"
#include "cuda/base/device_memory.h"
#include "cuda/base/floats.h"
#include "cuda/ops/ops.h"

namespace sheaf::cuda {

/// Rows of a matrix as the file has them, and where they go in it.
struct PackedPart {
  DeviceMemory<uint8_t> memory;
  DeviceMemory<float> adapter;  ///< what `rows` names of one: a, then b; empty: none
  PackedRows rows;
  RowPlace place;
};

/// A matrix of weights [rows, cols]: bf16; or e4m3 with a scale for each row; or packed, to be made one of
/// the two whenever a product wants it.
struct DeviceMatrix {
  DeviceMemory<bf16> wide;
  DeviceMemory<e4m3> narrow;
  std::vector<PackedPart> packed;
  DeviceMemory<float> scales;  ///< [rows], of e4m3
  DeviceMemory<float> peaks;   ///< [rows], what packed rows are divided by on the way to e4m3

  Fp8Weight fp8() const { return {narrow.data(), scales.data()}; }
  int64_t bytes() const;
  int64_t values() const;
};

/// The experts of a layer and what chooses them; nothing where it has none.
struct DeviceExperts {
  DeviceMemory<bf16> router;        ///< [router_rows, hidden]: the experts, the gate of the shared MLP, zeros
  DeviceMemory<float> router_bias;  ///< [experts], or empty
  DeviceMatrix gate_up;             ///< [experts × 2 ffn, hidden], each as interleave_rows() puts it
  DeviceMatrix down;                ///< [experts × hidden, ffn]
  DeviceMemory<float> gate_up_bias;  ///< [experts × 2 ffn], as the rows of gate_up lie; or empty
  DeviceMemory<float> down_bias;     ///< [experts × hidden], or empty
  bool narrow = false;               ///< whether their products are in FP8

  std::array<const DeviceMatrix*, 2> matrices() const { return {&gate_up, &down}; }
  int64_t bytes() const { return router.size() * int64_t{sizeof(bf16)} + gate_up.bytes() + down.bytes(); }
};

struct DeviceLayer {
  DeviceMemory<float> pre_attention_norm, post_attention_norm;  ///< [hidden]; empty where there is none
  DeviceMemory<float> pre_mlp_norm, post_mlp_norm;              ///< [hidden]; likewise
  DeviceMemory<float> q_norm;    ///< [head_dim] or [heads × head_dim]; empty where the family has none
  DeviceMemory<float> k_norm;    ///< [head_dim] or [kv_heads × head_dim], likewise
  DeviceMemory<float> qkv_bias;  ///< [(heads + 2 kv_heads) × head_dim]; empty where the family has none
  DeviceMemory<float> o_bias;    ///< [hidden]; empty where the family has none
  DeviceMemory<float> sinks;     ///< [heads], in base 2 as scores are; empty where the family has none
  DeviceMatrix qkv;              ///< [(heads + 2 kv_heads) × head_dim, hidden]
  DeviceMatrix o;                ///< [hidden, heads × head_dim]
  DeviceMatrix gate_up;          ///< [2 mlp_width, hidden], as interleave_rows() puts them; or empty
  DeviceMatrix down;             ///< [hidden, mlp_width], or empty
  DeviceExperts experts;

  std::array<const DeviceMatrix*, 4> matrices() const { return {&qkv, &o, &gate_up, &down}; }
};

/// Rows of MXFP4 that experts in FP8 could read. A row that E4M3 does not hold exactly makes its layer's
/// experts bf16.
struct Mxfp4Rows {
  int64_t rows = 0, inexact = 0;
  int32_t wide_layers = 0;  ///< layers whose experts are bf16 for it
};

/// A model's weights on the device.
struct DeviceWeights {
  DeviceMemory<bf16> embedding;  ///< [vocab, hidden]
  PackedPart packed_embedding;   ///< instead of it
  std::vector<DeviceLayer> layers;
  DeviceMemory<float> final_norm;  ///< [hidden]
  DeviceMemory<bf16> output;       ///< [vocab, hidden]; empty when tied to the embedding
  DeviceMemory<float> rope_freqs;  ///< [rotary tables, rotary_dim / 2]
  Mxfp4Rows mxfp4;

  int64_t bytes() const;  ///< of the matrices
  const bf16* output_or_embedding() const { return output.size() > 0 ? output.data() : embedding.data(); }
};

/// What the matrices of the layers are on the device. The output projection is bf16 always, and so is an
/// embedding that it is tied to.
struct WeightKind {
  bool fp8 = false;     ///< e4m3; else bf16
  bool packed = false;  ///< as the file has them, until a product wants them
};

DeviceMemory<float> upload_vector(const std::vector<float>& values);
/// Room for packed rows.
PackedPart make_part(DType type, int64_t rows, int64_t cols, const RowPlace& place);
/// Finds the scales of packed weights that become e4m3.
void find_scales(DeviceMatrix& matrix);
/// Radians per position, [rotary tables, pairs]; zeros for layers that do not rotate.
std::vector<float> frequencies(const ModelConfig& config);

/// What the matrix of a layer's experts in MXFP4 becomes once it is there: E4M3 where that holds all of its
/// rows, with `fp8`, else bf16; and unless they stay packed, they are expanded. Sets `experts.narrow`.
void settle_mxfp4(DeviceExperts& experts, WeightKind kind, Mxfp4Rows& counted);

/// Whether they can stay packed.
bool can_stay_packed(const Model& model);
/// Device memory that a model's weights take, and one matrix of packed ones expanded.
int64_t weight_bytes(const Model& model, WeightKind kind);
DeviceWeights upload_weights(const Model& model, WeightKind kind);
/// Packed ones are Q4_K; experts with biases, as gpt-oss has them, are MXFP4.
DeviceWeights random_weights(const ModelConfig& config, WeightKind kind, uint64_t seed);

}  // namespace sheaf::cuda
