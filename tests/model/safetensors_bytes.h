#pragma once
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/model/gguf_bytes.h"

namespace sheaf {

/// Writes safetensors by hand.
class Tensors {
 public:
  void add(const std::string& name, const char* type, const std::vector<int64_t>& shape,
           const std::string& bytes) {
    header_[name] = {
        {"dtype", type}, {"shape", shape}, {"data_offsets", {data_.size(), data_.size() + bytes.size()}}};
    data_ += bytes;
  }
  void add(const std::string& name, const std::vector<int64_t>& shape, const std::vector<float>& values) {
    add(name, "F32", shape,
        std::string(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float)));
  }
  std::string bytes() const {
    const std::string header = header_.dump();
    return raw<uint64_t>(header.size()) + header + data_;
  }

 private:
  nlohmann::json header_ = nlohmann::json::object();
  std::string data_;
};

}  // namespace sheaf
