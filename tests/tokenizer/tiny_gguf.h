#pragma once
#include <fmt/format.h>
#include <string>
#include <vector>

#include "tests/model/gguf_bytes.h"
#include "tests/tokenizer/tiny_tokenizer.h"

namespace sheaf {

inline std::string tiny_gpt2_gguf() {
  std::vector<std::string> tokens;
  for (int byte = 0; byte < 256; ++byte) tokens.push_back(byte_spelling(static_cast<unsigned char>(byte)));
  tokens.insert(tokens.end(), {"ab", "abc", "<|end|>"});
  std::vector<int32_t> types(tokens.size(), 1);
  types.back() = 3;
  GgufBytes file;
  file.text("general.architecture", "llama");
  file.text("tokenizer.ggml.model", "gpt2");
  file.text("tokenizer.ggml.pre", "gpt-2");
  file.texts("tokenizer.ggml.tokens", tokens);
  file.numbers("tokenizer.ggml.token_type", 5, types);
  file.texts("tokenizer.ggml.merges", {"a b", "ab c"});
  file.u32("tokenizer.ggml.eos_token_id", 258);
  return file.bytes();
}

inline std::string tiny_llama_gguf() {
  std::vector<std::string> tokens = {"<unk>", "<s>", "</s>"};
  std::vector<int32_t> types = {2, 3, 3};
  for (int byte = 0; byte < 256; ++byte) {
    tokens.push_back(fmt::format("<0x{:02X}>", byte));
    types.push_back(6);
  }
  std::vector<float> scores(tokens.size(), 0.0f);
  float score = -1;
  for (const char* piece : {"\u2581", "a", "b", "c", "ab", "\u2581ab", "abd", "\u2581\u2581"}) {
    tokens.emplace_back(piece);
    types.push_back(1);
    scores.push_back(score--);
  }
  GgufBytes file;
  file.text("general.architecture", "llama");
  file.text("tokenizer.ggml.model", "llama");
  file.texts("tokenizer.ggml.tokens", tokens);
  file.numbers("tokenizer.ggml.scores", 6, scores);
  file.numbers("tokenizer.ggml.token_type", 5, types);
  file.u32("tokenizer.ggml.bos_token_id", 1);
  file.u32("tokenizer.ggml.eos_token_id", 2);
  file.u32("tokenizer.ggml.unknown_token_id", 0);
  return file.bytes();
}

}  // namespace sheaf
