#pragma once
#include <string>
#include <string_view>

#include "core/model/config.h"
#include "io/model/config_fields.h"
#include "io/model/gguf.h"

namespace sheaf {

/// The metadata of a GGUF file that belongs to its architecture: block_count is "llama.block_count".
class GgufFields {
 public:
  GgufFields(const GgufFile& gguf, std::string_view arch) : gguf_(gguf), prefix_(std::string(arch) + ".") {}

  const GgufFile& gguf() const { return gguf_; }
  std::string key(const char* name) const { return prefix_ + name; }
  const std::string& source() const { return gguf_.path(); }
  std::string named(const char* name) const { return "metadata " + key(name); }
  bool has(const char* name) const { return gguf_.has(key(name)); }
  int64_t integer(const char* name) const { return static_cast<int64_t>(gguf_.uint(key(name))); }
  double number(const char* name) const { return gguf_.number(key(name)); }

 private:
  const GgufFile& gguf_;
  std::string prefix_;
};

/// Sets rotary_dim and the rotary table of all layers; lowers the context where the factors are only for a
/// shorter one. `partial`: only a part of a head may rotate.
void read_gguf_rope(const GgufFields& file, ModelConfig& config, bool partial = true);

/// Caps the context by attention.sliding_window. Up to its window, attention is plain.
void read_gguf_window(const GgufFields& file, ModelConfig& config);

}  // namespace sheaf
