#include "core/model/rope.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "core/base/error.h"

namespace sheaf {
namespace {

/// base^(2i/dim), rounded to fp32 where torch rounds.
std::vector<float> wavelengths(double base, int32_t dim) {
  std::vector<float> out(static_cast<size_t>(dim) / 2);
  for (size_t i = 0; i < out.size(); ++i) {
    const float exponent = static_cast<float>(2 * i) / static_cast<float>(dim);
    out[i] = static_cast<float>(std::pow(base, static_cast<double>(exponent)));
  }
  return out;
}

}  // namespace

RopeTable plain_rope(double base, int32_t dim) {
  RopeTable table{wavelengths(base, dim)};
  for (float& value : table.freqs) value = 1.0f / value;
  return table;
}

RopeTable linear_rope(double base, int32_t dim, double factor) {
  RopeTable table = plain_rope(base, dim);
  for (float& value : table.freqs) value /= static_cast<float>(factor);
  return table;
}

RopeTable llama3_rope(double base, int32_t dim, const Llama3Scaling& scaling) {
  RopeTable table = plain_rope(base, dim);
  const auto longest = static_cast<float>(scaling.original_context / scaling.low_freq_factor);
  const auto shortest = static_cast<float>(scaling.original_context / scaling.high_freq_factor);
  const auto factor = static_cast<float>(scaling.factor);
  for (float& value : table.freqs) {
    const float wavelength = static_cast<float>(2 * std::numbers::pi) / value;
    if (wavelength > longest) {
      value /= factor;
    } else if (wavelength >= shortest) {
      const float smooth = (static_cast<float>(scaling.original_context) / wavelength -
                            static_cast<float>(scaling.low_freq_factor)) /
                           static_cast<float>(scaling.high_freq_factor - scaling.low_freq_factor);
      value = (1.0f - smooth) * value / factor + smooth * value;
    }
  }
  return table;
}

double yarn_attention_factor(double factor, double mscale) {
  return factor <= 1 ? 1.0 : 0.1 * mscale * std::log(factor) + 1.0;
}

RopeTable yarn_rope(double base, int32_t dim, const YarnScaling& scaling) {
  // The pair that turns `rotations` times within the original context.
  const auto pair_of = [&](double rotations) {
    return dim * std::log(scaling.original_context / (rotations * 2 * std::numbers::pi)) /
           (2 * std::log(base));
  };
  double low = pair_of(scaling.beta_fast);
  double high = pair_of(scaling.beta_slow);
  if (scaling.truncate) {
    low = std::floor(low);
    high = std::ceil(high);
  }
  low = std::max(low, 0.0);
  high = std::min(high, dim - 1.0);
  if (low == high) high += 0.001;
  RopeTable table{wavelengths(base, dim), static_cast<float>(scaling.attention_factor)};
  for (size_t i = 0; i < table.freqs.size(); ++i) {
    const float ramp = std::clamp(
        (static_cast<float>(i) - static_cast<float>(low)) / static_cast<float>(high - low), 0.0f, 1.0f);
    const float keep = 1.0f - ramp;
    const float wavelength = table.freqs[i];
    table.freqs[i] =
        1.0f / (static_cast<float>(scaling.factor) * wavelength) * (1.0f - keep) + 1.0f / wavelength * keep;
  }
  return table;
}

RopeTable divided_rope(double base, int32_t dim, const std::vector<float>& divisors) {
  RopeTable table{wavelengths(base, dim)};
  if (divisors.size() != table.freqs.size())
    fail("there are {} rope divisors for {} pairs", divisors.size(), table.freqs.size());
  for (size_t i = 0; i < divisors.size(); ++i) table.freqs[i] = 1.0f / (divisors[i] * table.freqs[i]);
  return table;
}

}  // namespace sheaf
