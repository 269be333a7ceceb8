#include "io/model/family.h"

#include <algorithm>
#include <array>

namespace sheaf {
namespace {

constexpr std::array<Family, 6> families{{
    {.name = "llama",
     .architecture = "LlamaForCausalLM",
     .gguf = "llama",
     .qk_norm = QkNorm::none,
     .post_norm = false,
     .qkv_bias = false,
     .fused = false,
     .paired_gguf = true,
     .default_head_dim = 0,
     .default_window = 0},
    {.name = "qwen2",
     .architecture = "Qwen2ForCausalLM",
     .gguf = "qwen2",
     .qk_norm = QkNorm::none,
     .post_norm = false,
     .qkv_bias = true,
     .fused = false,
     .paired_gguf = false,
     .default_head_dim = 0,
     .default_window = 0},
    {.name = "qwen3",
     .architecture = "Qwen3ForCausalLM",
     .gguf = "qwen3",
     .qk_norm = QkNorm::per_head,
     .post_norm = false,
     .qkv_bias = false,
     .fused = false,
     .paired_gguf = false,
     .default_head_dim = 128,
     .default_window = 0},
    {.name = "mistral",
     .architecture = "MistralForCausalLM",
     .gguf = nullptr,
     .qk_norm = QkNorm::none,
     .post_norm = false,
     .qkv_bias = false,
     .fused = false,
     .paired_gguf = true,
     .default_head_dim = 0,
     .default_window = 4096},
    {.name = "phi3",
     .architecture = "Phi3ForCausalLM",
     .gguf = "phi3",
     .qk_norm = QkNorm::none,
     .post_norm = false,
     .qkv_bias = false,
     .fused = true,
     .paired_gguf = false,
     .default_head_dim = 0,
     .default_window = 0},
    {.name = "olmo2",
     .architecture = "Olmo2ForCausalLM",
     .gguf = "olmo2",
     .qk_norm = QkNorm::whole,
     .post_norm = true,
     .qkv_bias = false,
     .fused = false,
     .paired_gguf = false,
     .default_head_dim = 0,
     .default_window = 0},
}};

}  // namespace

const Family* find_hf_family(std::string_view model_type) {
  const auto* found = std::ranges::find(families, model_type, &Family::name);
  return found == families.end() ? nullptr : found;
}

const Family* find_gguf_family(std::string_view architecture) {
  const auto* found = std::ranges::find_if(
      families, [&](const Family& family) { return family.gguf != nullptr && family.gguf == architecture; });
  return found == families.end() ? nullptr : found;
}

std::string hf_family_names() {
  std::string names;
  for (const Family& family : families) names += (names.empty() ? "" : ", ") + std::string(family.name);
  return names;
}

std::string gguf_family_names() {
  std::string names;
  for (const Family& family : families) {
    if (family.gguf != nullptr) names += (names.empty() ? "" : ", ") + std::string(family.gguf);
  }
  return names;
}

}  // namespace sheaf
