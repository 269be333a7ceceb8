#pragma once
#include <cstdint>
#include <vector>

namespace sheaf {

/// Radians per position of every rotating pair, and a factor on cos and sin. The arithmetic follows Hugging
/// Face's fp32 steps, so that long positions land on the same angles.
struct RopeTable {
  std::vector<float> freqs;  ///< [dim / 2]
  float scale = 1.0f;
};

/// base^(-2i/dim).
RopeTable plain_rope(double base, int32_t dim);

/// Every position divided by `factor`.
RopeTable linear_rope(double base, int32_t dim, double factor);

/// Llama 3.x: slow pairs are divided by `factor`, quick ones stay, those between are blended.
struct Llama3Scaling {
  double factor;
  double low_freq_factor;
  double high_freq_factor;
  double original_context;
};
RopeTable llama3_rope(double base, int32_t dim, const Llama3Scaling& scaling);

/// YaRN: quick pairs stay, slow ones are divided by `factor`, with a ramp between.
struct YarnScaling {
  double factor;
  double original_context;
  double attention_factor;  ///< on cos and sin
  double beta_fast = 32;
  double beta_slow = 1;
  bool truncate = true;  ///< the ramp starts and ends at whole pairs
};
RopeTable yarn_rope(double base, int32_t dim, const YarnScaling& scaling);
/// What YaRN does to cos and sin unless told otherwise.
double yarn_attention_factor(double factor, double mscale = 1);

/// One divisor per pair (long-rope models; GGUF files of Llama 3.x). `divisors` has dim / 2 entries.
RopeTable divided_rope(double base, int32_t dim, const std::vector<float>& divisors);

}  // namespace sheaf
