#pragma once
#include <cstring>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/files.h"

namespace sheaf {

/// A file of tests/model/goldens, by its path from there.
inline std::string golden(const std::string& name) {
  return "tests/model/goldens/" + name;
}

inline nlohmann::json read_golden_json(const std::string& name) {
  return nlohmann::json::parse(read_text(golden(name)));
}

inline std::vector<float> floats_of(const std::string& bytes) {
  std::vector<float> values(bytes.size() / sizeof(float));
  std::memcpy(values.data(), bytes.data(), values.size() * sizeof(float));
  return values;
}

inline std::string unhex(const std::string& text) {
  std::string bytes;
  for (size_t i = 0; i + 1 < text.size(); i += 2)
    bytes += static_cast<char>(std::stoi(text.substr(i, 2), nullptr, 16));
  return bytes;
}

}  // namespace sheaf
