#include <algorithm>
#include <cmath>
#include <cstddef>

#include "cpu/reference/ops.h"

namespace sheaf::reference {

void attend(std::span<const float> query, const float* keys, const float* values, int64_t stride,
            std::span<const int64_t> slots, std::span<float> out) {
  std::fill(out.begin(), out.end(), 0.0f);
  if (slots.empty()) return;
  const float scale = 1.0f / std::sqrt(static_cast<float>(query.size()));
  std::vector<float> scores(slots.size());
  for (size_t j = 0; j < slots.size(); ++j) {
    const float* key = keys + slots[j] * stride;
    float dot = 0;
    for (size_t i = 0; i < query.size(); ++i) dot += query[i] * key[i];
    scores[j] = dot * scale;
  }
  const float top = *std::max_element(scores.begin(), scores.end());
  float sum = 0;
  for (float& score : scores) {
    score = std::exp(score - top);
    sum += score;
  }
  for (size_t j = 0; j < slots.size(); ++j) {
    const float* value = values + slots[j] * stride;
    for (size_t i = 0; i < out.size(); ++i) out[i] += scores[j] * value[i];
  }
  for (float& value : out) value /= sum;
}

}  // namespace sheaf::reference
