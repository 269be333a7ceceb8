#pragma once
#include <cmath>
#include <cstdint>
#include <limits>
#include <span>
#include <utility>
#include <vector>

#include "core/model/config.h"
#include "core/model/model.h"

namespace sheaf {

/// Cosine and sine of rotary pair `i` at `position`. The angle is an fp32 product, as the models were trained
/// and as Hugging Face computes it; far into a context a more exact angle would be a different one.
inline std::pair<float, float> rope_angle(const RopeTable& rope, int32_t position, int32_t i) {
  const float angle = static_cast<float>(position) * rope.freqs[static_cast<size_t>(i)];
  const auto exact = static_cast<double>(angle);
  return {static_cast<float>(std::cos(exact)) * rope.scale, static_cast<float>(std::sin(exact)) * rope.scale};
}

}  // namespace sheaf

/// The operations of the reference backend, each for one row and in plain fp32, sums taken from first to
/// last.
namespace sheaf::reference {

/// y = W x + bias, with W kept transposed so that the sum over inputs is the outer loop.
struct Linear {
  int64_t inputs = 0;
  int64_t outputs = 0;
  std::vector<float> weight;  ///< [inputs, outputs]
  std::vector<float> bias;    ///< [outputs] or empty
};
Linear read_linear(const Matrix& weight, const Matrix& bias = {});
void apply(const Linear& linear, std::span<const float> x, std::span<float> y);

/// out = x / sqrt(mean(x²) + eps) * weight; out may be x.
void rms_norm(std::span<const float> x, std::span<const float> weight, float eps, std::span<float> out);

/// Rotates the leading dimensions of every head of `head_dim` in `heads` by the row's position.
void rotate(const RopeTable& rope, int32_t position, size_t head_dim, std::span<float> heads);

/// x = cap · tanh(x / cap); a cap of 0 leaves x as it is.
void soft_cap(float cap, std::span<float> x);

/// How queries and keys become scores.
struct Scores {
  float scale;                                           ///< on query · key
  float cap;                                             ///< of soft_cap()
  float sink = -std::numeric_limits<float>::infinity();  ///< a logit of no key; minus infinity: none
  float document_temperature = 1;                        ///< divides scores of keys that are apart
  float document_scale = 1;  ///< the power of what all keys that are apart weigh together
};

/// A key that a query sees.
struct SeenKey {
  int64_t slot;
  bool apart = false;  ///< of a document in APE
};

/// One query head over `seen`, in that order; zeros where there are none. A key starts at keys[slot *
/// stride], its value at values[slot * stride].
void attend(std::span<const float> query, const Scores& how, const float* keys, const float* values,
            int64_t stride, std::span<const SeenKey> seen, std::span<float> out);

/// out = activation(gate) * up, or as Activation::clamped says.
void gate(Activation activation, std::span<const float> gates, std::span<const float> up,
          std::span<float> out);

}  // namespace sheaf::reference
