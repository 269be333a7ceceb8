#pragma once
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/model/gguf_bytes.h"

namespace sheaf {

/// Writes safetensors by hand. A tensor that is added again takes the place of the first.
class Tensors {
 public:
  void add(const std::string& name, const char* type, const std::vector<int64_t>& shape, std::string bytes) {
    tensors_[name] = {type, shape, std::move(bytes)};
  }
  void add(const std::string& name, const std::vector<int64_t>& shape, const std::vector<float>& values) {
    add(name, "F32", shape,
        std::string(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float)));
  }
  std::string bytes() const {
    nlohmann::json header = nlohmann::json::object();
    std::string data;
    for (const auto& [name, tensor] : tensors_) {
      header[name] = {{"dtype", tensor.type},
                      {"shape", tensor.shape},
                      {"data_offsets", {data.size(), data.size() + tensor.bytes.size()}}};
      data += tensor.bytes;
    }
    const std::string text = header.dump();
    return raw<uint64_t>(text.size()) + text + data;
  }

 private:
  struct Tensor {
    std::string type;
    std::vector<int64_t> shape;
    std::string bytes;
  };
  std::map<std::string, Tensor> tensors_;
};

}  // namespace sheaf
