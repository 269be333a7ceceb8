#pragma once
#include <cmath>
#include <limits>

#include "core/base/error.h"

/// Numbers of a config.json or of the metadata of a GGUF file. `Fields` has source() and named(key) for
/// messages, and has(), integer() and number().
namespace sheaf {

template <class Fields>
int32_t count(const Fields& fields, const char* key) {
  const int64_t value = fields.integer(key);
  if (value < 1 || value > std::numeric_limits<int32_t>::max())
    refuse("{}: {} is {}; it must be positive", fields.source(), fields.named(key), value);
  return static_cast<int32_t>(value);
}
template <class Fields>
int32_t count(const Fields& fields, const char* key, int32_t fallback) {
  return fields.has(key) ? count(fields, key) : fallback;
}

template <class Fields>
double positive(const Fields& fields, const char* key) {
  const double value = fields.number(key);
  if (!(value > 0) || !std::isfinite(value))
    refuse("{}: {} is {}; it must be positive", fields.source(), fields.named(key), value);
  return value;
}
template <class Fields>
double positive(const Fields& fields, const char* key, double fallback) {
  return fields.has(key) ? positive(fields, key) : fallback;
}
/// A factor or a cap.
template <class Fields>
float factor(const Fields& fields, const char* key, float fallback) {
  return fields.has(key) ? static_cast<float>(positive(fields, key)) : fallback;
}

}  // namespace sheaf
