#pragma once
#include "core/tokenizer/tokenizer.h"

namespace sheaf {

/// A token for each byte, for prompts that are texts for somebody else. A byte of markup has a token of its
/// own, so that no text is mistaken for markup.
class RawTokenizer : public Tokenizer {
 public:
  static constexpr TokenId kMarkup = 256;  ///< byte b of markup is token 256 + b

  void encode(std::string_view text, bool, Tokens& out) const override {
    for (const char c : text) out.push_back(static_cast<unsigned char>(c));
  }
  std::string decode(std::span<const TokenId> ids, bool skip_special = true) const override {
    std::string text;
    for (const TokenId id : ids)
      if (!skip_special || !is_special(id)) text += static_cast<char>(id % kMarkup);
    return text;
  }
  int32_t vocab_size() const override { return 2 * kMarkup; }
  std::optional<TokenId> find(std::string_view piece) const override {
    if (piece.size() != 1) return std::nullopt;
    return static_cast<unsigned char>(piece[0]);
  }
  bool is_special(TokenId id) const override { return id >= kMarkup; }
  std::string describe() const override { return "a token for each byte"; }

 protected:
  void find_special(std::string_view text, size_t begin, size_t end,
                    std::vector<SpecialSpan>& out) const override {
    for (size_t at = begin; at < end; ++at)
      out.push_back({at, at + 1, kMarkup + static_cast<unsigned char>(text[at])});
  }
};

}  // namespace sheaf
