#pragma once
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "tests/tokenizer/tiny_tokenizer.h"

namespace sheaf {

/// Writes vocabulary-only GGUF files.
class TinyGguf {
 public:
  void text(std::string_view key, std::string_view value) { add(key, 8, counted(value)); }
  void number(std::string_view key, uint32_t value) { add(key, 4, raw(value)); }
  void texts(std::string_view key, const std::vector<std::string>& values) {
    std::string bytes;
    for (const std::string& value : values) bytes += counted(value);
    add(key, 9, raw(uint32_t{8}) + raw(uint64_t{values.size()}) + bytes);
  }
  template <class T>
  void numbers(std::string_view key, uint32_t type, const std::vector<T>& values) {
    std::string bytes;
    for (const T value : values) bytes += raw(value);
    add(key, 9, raw(type) + raw(uint64_t{values.size()}) + bytes);
  }
  std::string bytes() const { return "GGUF" + raw(uint32_t{3}) + raw(uint64_t{0}) + raw(count_) + body_; }

 private:
  template <class T>
  static std::string raw(T value) {
    std::string bytes(sizeof value, '\0');
    std::memcpy(bytes.data(), &value, sizeof value);
    return bytes;
  }
  static std::string counted(std::string_view text) { return raw(uint64_t{text.size()}) + std::string(text); }
  void add(std::string_view key, uint32_t type, const std::string& value) {
    body_ += counted(key) + raw(type) + value;
    ++count_;
  }

  std::string body_;
  uint64_t count_ = 0;
};

inline std::string tiny_gpt2_gguf() {
  std::vector<std::string> tokens;
  for (int byte = 0; byte < 256; ++byte) tokens.push_back(byte_spelling(static_cast<unsigned char>(byte)));
  tokens.insert(tokens.end(), {"ab", "abc", "<|end|>"});
  std::vector<int32_t> types(tokens.size(), 1);
  types.back() = 3;
  TinyGguf file;
  file.text("general.architecture", "llama");
  file.text("tokenizer.ggml.model", "gpt2");
  file.text("tokenizer.ggml.pre", "gpt-2");
  file.texts("tokenizer.ggml.tokens", tokens);
  file.numbers("tokenizer.ggml.token_type", 5, types);
  file.texts("tokenizer.ggml.merges", {"a b", "ab c"});
  file.number("tokenizer.ggml.eos_token_id", 258);
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
  TinyGguf file;
  file.text("general.architecture", "llama");
  file.text("tokenizer.ggml.model", "llama");
  file.texts("tokenizer.ggml.tokens", tokens);
  file.numbers("tokenizer.ggml.scores", 6, scores);
  file.numbers("tokenizer.ggml.token_type", 5, types);
  file.number("tokenizer.ggml.bos_token_id", 1);
  file.number("tokenizer.ggml.eos_token_id", 2);
  file.number("tokenizer.ggml.unknown_token_id", 0);
  return file.bytes();
}

}  // namespace sheaf
