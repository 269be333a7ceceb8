#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "core/model/config.h"
#include "core/model/model.h"

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

/// Rotates the first rotary_dim dimensions of every head in `heads` by the row's position.
void rotate(const ModelConfig& config, int32_t position, std::span<float> heads);

/// One query head over the keys and values in `slots`, in that order; zeros where there are none.
/// Key j starts at keys[slots[j] * stride], value j at values[slots[j] * stride].
void attend(std::span<const float> query, const float* keys, const float* values, int64_t stride,
            std::span<const int64_t> slots, std::span<float> out);

/// out = silu(gate) * up.
void gated_silu(std::span<const float> gate, std::span<const float> up, std::span<float> out);

}  // namespace sheaf::reference
