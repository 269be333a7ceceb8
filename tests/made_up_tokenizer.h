#pragma once
#include <algorithm>
#include <fmt/format.h>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "core/tokenizer/tokenizer.h"

namespace sheaf::test {

/// A tokenizer of given pieces: token i is piece i, and a text is the longest pieces one after the other.
/// What no piece spells is left out.
class MadeUpTokenizer : public Tokenizer {
 public:
  explicit MadeUpTokenizer(std::vector<std::string> pieces) : pieces_(std::move(pieces)) {}

  void encode(std::string_view text, bool, Tokens& out) const override {
    while (!text.empty()) {
      size_t longest = 0;
      TokenId found = 0;
      for (size_t i = 0; i < pieces_.size(); ++i)
        if (pieces_[i].size() > longest && text.starts_with(pieces_[i])) {
          longest = pieces_[i].size();
          found = static_cast<TokenId>(i);
        }
      if (longest > 0) out.push_back(found);
      text.remove_prefix(std::max<size_t>(longest, 1));
    }
  }
  std::string decode(std::span<const TokenId> ids, bool) const override {
    std::string text;
    for (const TokenId id : ids) text += pieces_.at(static_cast<size_t>(id));
    return text;
  }
  int32_t vocab_size() const override { return static_cast<int32_t>(pieces_.size()); }
  std::optional<TokenId> find(std::string_view piece) const override {
    const auto at = std::ranges::find(pieces_, piece);
    if (at == pieces_.end()) return std::nullopt;
    return static_cast<TokenId>(at - pieces_.begin());
  }
  bool is_special(TokenId) const override { return false; }
  std::string describe() const override { return fmt::format("made up, {} tokens", pieces_.size()); }

 private:
  std::vector<std::string> pieces_;
};

/// All bytes, what an answer often has, and some pieces of `text`.
inline MadeUpTokenizer random_tokenizer(std::mt19937& random, const std::string& text, int pieces) {
  std::vector<std::string> all;
  for (int byte = 0; byte < 256; ++byte) all.emplace_back(1, static_cast<char>(byte));
  for (const char* piece : {" \"", "\",", "\",\n", " null", "null", "\\\"", ".\"", "\"}", " \"A", "\"\""})
    all.emplace_back(piece);
  for (int i = 0; i < pieces && !text.empty(); ++i) {
    const size_t begin = random() % text.size();
    all.push_back(text.substr(begin, 1 + random() % 6));
  }
  std::ranges::sort(all);
  all.erase(std::unique(all.begin(), all.end()), all.end());
  return MadeUpTokenizer(std::move(all));
}

/// A text of words and signs that are trouble somewhere, on several lines.
inline std::string random_document(std::mt19937& random, int words) {
  static const std::vector<std::string> parts = {"Oak",
                                                 "oak",
                                                 "Tea",
                                                 "tea",
                                                 "green",
                                                 "12",
                                                 "oz",
                                                 "12oz",
                                                 "1,200",
                                                 "\"",
                                                 "6\"",
                                                 "\\",
                                                 "\\n",
                                                 "a\\\"b",
                                                 "'",
                                                 ".",
                                                 ",",
                                                 "(",
                                                 "e\u0301te\u0301",
                                                 "\u00dcber",
                                                 "\u65b0\u6b3e\u7537\u978b",
                                                 "\U0001F375",
                                                 "\u2764\uFE0F",
                                                 "na\u00efve",
                                                 "null",
                                                 "none",
                                                 "A",
                                                 "a",
                                                 "aa",
                                                 "aaa",
                                                 "-",
                                                 "\u00bd",
                                                 "\x7f",
                                                 "\x01",
                                                 "B12",
                                                 "&amp;",
                                                 "{",
                                                 "}",
                                                 "\u0e0a\u0e32"};
  static const std::vector<std::string> gaps = {" ",  " ",  " ",    " ",      "",  "  ",
                                                "\t", "\n", "\r\n", "\u00a0", ", "};
  std::string text;
  for (int i = 0; i < words; ++i) {
    text += parts[random() % parts.size()];
    text += gaps[random() % gaps.size()];
  }
  return text;
}

/// The pieces, and every byte by itself.
inline MadeUpTokenizer bytes_and(std::vector<std::string> pieces) {
  for (int byte = 0; byte < 256; ++byte) pieces.emplace_back(1, static_cast<char>(byte));
  return MadeUpTokenizer(std::move(pieces));
}

}  // namespace sheaf::test
