#pragma once
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "core/text/utf8.h"
#include "core/tokenizer/byte_bpe.h"
#include "core/tokenizer/tokenizer.h"

namespace sheaf {

/// How byte-level files spell a byte.
inline std::string byte_spelling(unsigned char byte) {
  for (uint32_t point = 0; point < 0x144; ++point) {
    if (byte_of_char(point) != byte) continue;
    std::string out;
    append_utf8(point, out);
    return out;
  }
  return {};
}

inline std::string spelling(std::string_view text) {
  std::string out;
  for (const char c : text) out += byte_spelling(static_cast<unsigned char>(c));
  return out;
}

/// A byte-level tokenizer.json: ids 0 to 255 are the bytes, then one id per merge, then <|end|>.
inline nlohmann::json tiny_json(const std::vector<std::pair<std::string, std::string>>& merges) {
  nlohmann::json vocab = nlohmann::json::object(), list = nlohmann::json::array();
  for (int byte = 0; byte < 256; ++byte) vocab[byte_spelling(static_cast<unsigned char>(byte))] = byte;
  int next = 256;
  for (const auto& [left, right] : merges) {
    list.push_back({spelling(left), spelling(right)});
    vocab[spelling(left + right)] = next++;
  }
  return {{"added_tokens", {{{"id", next}, {"content", "<|end|>"}, {"special", true}}}},
          {"normalizer", nullptr},
          {"pre_tokenizer", {{"type", "ByteLevel"}, {"add_prefix_space", false}, {"use_regex", true}}},
          {"model", {{"type", "BPE"}, {"vocab", vocab}, {"merges", list}}}};
}

inline Tokens ids_of(const Tokenizer& tokenizer, std::string_view text, bool parse_special = true) {
  Tokens ids;
  tokenizer.encode(text, parse_special, ids);
  return ids;
}

}  // namespace sheaf
