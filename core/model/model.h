#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/model/config.h"
#include "core/model/dtype.h"

namespace sheaf {

/// Rows of a matrix that do not lie in a file as the matrix's type has them, but are put together whenever
/// they are read.
struct StoredRows {
  /// Rows [first, first + count), one after the other.
  std::function<void(int64_t first, int64_t count, std::byte* out)> read;
  std::string tensor;               ///< what they are made of, in a mapped file
  const std::byte* data = nullptr;  ///< its bytes
  int64_t bytes = 0;
  int64_t row_bytes = 0;  ///< of its bytes, one row's; 0: a row may need any of them
};

/// W + scale * B A, merged when a row is read.
struct LowRank {
  std::string file;      ///< of the adapter, for messages
  std::string module;    ///< what the names of its two tensors begin with
  std::vector<float> a;  ///< [rank, cols]
  std::vector<float> b;  ///< [rows, rank]
  int32_t rank = 0;
  float scale = 0;
};

/// A weight matrix [rows, cols] in the file's own type, read row by row as fp32. A vector has one row.
/// Points into memory that the Model keeps mapped. All weights reach a backend through the read functions
/// below, and each of them refuses a value that is not finite in the numbers that it gives: no format can
/// forget it, and it costs no second pass over a file, only over rows that are in the cache by then.
struct Matrix {
  std::string name;
  std::string file;  ///< where it comes from, for messages
  DType dtype = DType::f32;
  int64_t rows = 0;
  int64_t cols = 0;
  const std::byte* data = nullptr;           ///< or:
  std::shared_ptr<const StoredRows> source;  ///< what puts its rows together
  int32_t rope_head_dim = 0;  ///< not 0: rows of each head are stored pair by pair (GGUF llama); read() puts
                              ///< them back as two halves
  int32_t rope_dim = 0;       ///< then: leading rows of a head that are; 0: all of them
  std::shared_ptr<const LowRank> adapter;  ///< LoRA delta, if any

  bool empty() const { return data == nullptr && source == nullptr; }
  int64_t row_bytes() const { return cols / block_values(dtype) * block_bytes(dtype); }
  /// Rows [first, first + count) as fp32, row-major.
  void read(int64_t first, int64_t count, float* out) const;
  /// All rows; none of an empty matrix.
  std::vector<float> read_all() const;
  /// The same rows as the bits of bf16.
  void read_bf16(int64_t first, int64_t count, uint16_t* out) const;
  /// Rows [first, first + count) as the file has them, row_bytes() each, in read()'s order; the adapter is
  /// left out.
  void read_stored(int64_t first, int64_t count, std::byte* out) const;
  /// The same rows as e4m3, and the scale of each. A row that is e4m3 with a single scale stays as it is.
  void read_e4m3(int64_t first, int64_t count, uint8_t* out, float* scales) const;
  /// Refuses the same rows where read() would. For a matrix that is read later, token by token.
  void check_finite(int64_t first, int64_t count) const;
  /// Brings the same rows into memory at once rather than page by page. Where their file cannot be read (cut
  /// short, a disk error) it fails with the file's name; a plain access would end the program.
  void page_in(int64_t first, int64_t count) const;
  /// Rows [first, first + count) as a matrix of their own (fused projections).
  Matrix slice(int64_t first, int64_t count, std::string slice_name) const;

 private:
  void check_rows(int64_t first, int64_t count) const;
  /// read() without its checks, and without the adapter.
  void convert(int64_t first, int64_t count, float* out) const;
  /// Says what is wrong with rows one of whose values is not finite in fp32, or in bf16.
  [[noreturn]] void refuse_rows(int64_t first, int64_t count) const;
  /// Whether rows lie one after the other, as read() gives them.
  bool in_place() const { return rope_head_dim == 0 && !source; }
  /// As read_stored(), in place or in `buffer`; without the adapter.
  const std::byte* stored(int64_t first, int64_t count, std::vector<std::byte>& buffer) const;
};

struct ExpertWeights {
  Matrix gate, up;                                      ///< [ffn of an expert, hidden]
  Matrix down;                                          ///< [hidden, ffn of an expert]
  Matrix gate_bias = {}, up_bias = {}, down_bias = {};  ///< [rows of the matrix], or empty
};

struct LayerWeights {
  Matrix pre_attention_norm, post_attention_norm;  ///< [hidden] or empty, as ModelConfig::norms says
  Matrix q, k, v;                      ///< [heads × head_dim, hidden], [kv_heads × head_dim, hidden] twice
  Matrix q_norm, k_norm;               ///< [head_dim], [heads × head_dim] / [kv_heads × head_dim], or empty
  Matrix o;                            ///< [hidden, heads × head_dim]
  Matrix pre_mlp_norm, post_mlp_norm;  ///< [hidden] or empty
  Matrix gate, up;                     ///< [mlp_width, hidden], or empty where that is 0
  Matrix down;                         ///< [hidden, mlp_width]
  Matrix router;                       ///< [experts, hidden], or empty
  Matrix router_bias;                  ///< [experts], added to logits, or to scores for the choice; or empty
  Matrix sinks;                        ///< [heads], logits of no key; or empty
  Matrix shared_gate;                  ///< [1, hidden], or empty
  std::vector<ExpertWeights> experts;  ///< as many as the router has rows
  // [rows of the matrix], or empty, as ModelConfig::biases says.
  Matrix q_bias, k_bias, v_bias, o_bias, gate_bias, up_bias, down_bias;

  /// The matrices that products read, all there.
  std::vector<const Matrix*> linears() const {
    std::vector<const Matrix*> list{&q, &k, &v, &o};
    if (!gate.empty()) list.insert(list.end(), {&gate, &up, &down});
    if (!router.empty()) list.push_back(&router);
    for (const ExpertWeights& expert : experts)
      list.insert(list.end(), {&expert.gate, &expert.up, &expert.down});
    return list;
  }
  /// Everything else; some are empty.
  std::vector<const Matrix*> vectors() const {
    std::vector<const Matrix*> list{&pre_attention_norm,
                                    &post_attention_norm,
                                    &pre_mlp_norm,
                                    &post_mlp_norm,
                                    &q_norm,
                                    &k_norm,
                                    &q_bias,
                                    &k_bias,
                                    &v_bias,
                                    &o_bias,
                                    &gate_bias,
                                    &up_bias,
                                    &down_bias,
                                    &router_bias,
                                    &shared_gate,
                                    &sinks};
    for (const ExpertWeights& expert : experts)
      list.insert(list.end(), {&expert.gate_bias, &expert.up_bias, &expert.down_bias});
    return list;
  }
};

struct Model {
  std::string path;
  ModelConfig config;
  Matrix embedding;  ///< [vocab, hidden]
  std::vector<LayerWeights> layers;
  Matrix final_norm;                               ///< [hidden]
  Matrix output;                                   ///< [vocab, hidden]; the embedding when tied
  Matrix output_bias;                              ///< [vocab] or empty
  std::vector<std::shared_ptr<const void>> files;  ///< keep the mappings alive
  std::string notice;  ///< what of the file the user should know is left out; empty: nothing
};

}  // namespace sheaf
