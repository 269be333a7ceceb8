#pragma once
#include "core/tokenizer/tokenizer.h"

namespace sheaf {

/// Used where there is no tokenizer: a fixed number of tokens per byte, equal text in equal tokens. Good for
/// counting only.
class ByteTokenizer final : public Tokenizer {
 public:
  ByteTokenizer(double tokens_per_byte, int32_t vocab) : tokens_per_byte_(tokens_per_byte), vocab_(vocab) {}

  void encode(std::string_view text, bool parse_special, Tokens& out) const override;
  std::string decode(std::span<const TokenId> ids, bool skip_special) const override;
  int32_t vocab_size() const override { return vocab_; }
  std::optional<TokenId> find(std::string_view) const override { return std::nullopt; }
  bool is_special(TokenId) const override { return false; }
  std::string describe() const override;

 private:
  double tokens_per_byte_;
  int32_t vocab_;
};

}  // namespace sheaf
