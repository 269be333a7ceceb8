#pragma once

#include "core/engine/answer.h"
#include "core/tokenizer/tokenizer.h"

namespace sheaf {

/// Knows which tokens end an answer. One table per tokenizer, looked up at every decoded token.
class StopRules {
 public:
  /// `vocab`: ids the model can give. Those past the tokenizer's end have no text; they end an answer.
  StopRules(const Tokenizer& tokenizer, int32_t vocab);
  /// Only the given tokens end an answer: for token-level work without a tokenizer.
  StopRules(int32_t vocab, const Tokens& end_tokens);

  TokenId vocab() const { return static_cast<TokenId>(flags_.size()); }
  bool ends_text(TokenId token) const { return flags_[token] & kEnd; }
  /// Whether the answer `tokens` of a slot without allowed answers is complete with its last token.
  bool ends_answer(const Slot& slot, std::span<const TokenId> tokens) const;

 private:
  bool ends_form(Stop stop, std::span<const TokenId> tokens) const;
  bool ends_with_stop(const std::vector<std::string>& stops, std::span<const TokenId> tokens) const;

  static constexpr uint8_t kEnd = 1, kNewline = 2, kBrace = 4, kMark = 8;
  const Tokenizer* tokenizer_ = nullptr;
  std::vector<uint8_t> flags_;  ///< [vocab]
};

/// The byte after the JSON literal that `text` starts with, leading spaces apart: a closed string or list, or
/// anything else up to a comma, a closing brace or a newline; npos where it is not complete.
size_t literal_end(std::string_view text);

/// The byte after the brace that closes an object opened before `text` starts; npos where it stays open.
size_t object_end(std::string_view text);

}  // namespace sheaf
