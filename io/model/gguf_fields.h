#pragma once
#include <string>
#include <string_view>
#include <vector>

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
/// shorter one. `partial`: only a part of a head may rotate; `truncate`: YaRN counts whole pairs.
void read_gguf_rope(const GgufFields& file, ModelConfig& config, bool partial = true, bool truncate = true);

/// Sets experts by the metadata and by the tensors of the layers, where the file has them. `normalized`:
/// where it does not say.
void read_gguf_experts(const GgufFields& file, ModelConfig& config, bool normalized);

/// Which layers slide: attention.sliding_window_pattern lists them, or says every how many-th does not.
/// `period`: the latter, where the file does not say; 0: all slide.
std::vector<bool> sliding_gguf_layers(const GgufFields& file, const ModelConfig& config, uint64_t period);

/// Gives these layers a second rotary table: plain, with rope.freq_base_swa or else `base`.
void read_gguf_local_rope(const GgufFields& file, ModelConfig& config, uint64_t period, double base);

/// Sets their windows by attention.sliding_window, where the file has it.
void read_gguf_windows(const GgufFields& file, ModelConfig& config, uint64_t period = 0);

}  // namespace sheaf
