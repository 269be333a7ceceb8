#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/token.h"

namespace sheaf {

/// A run of prompt text. Markup comes from sheaf's own chat templates and may hold special tokens;
/// anything else comes from a corpus or a job and never does, whatever it spells.
struct TextPiece {
  std::string text;
  bool markup = false;
};

/// A special token found in text[begin, end).
struct SpecialSpan {
  size_t begin;
  size_t end;
  TokenId id;
};

/// Text to token ids and back. Thread-safe once built.
class Tokenizer {
 public:
  virtual ~Tokenizer() = default;

  /// Appends the ids of `text`. With `parse_special`, special tokens spelled out in the text become their
  /// ids. No beginning- or end-of-text token is added. Invalid UTF-8 is treated as docs/tokenizers.md says.
  virtual void encode(std::string_view text, bool parse_special, Tokens& out) const = 0;

  /// The bytes that `ids` stand for. Special tokens are spelled out unless `skip_special`.
  virtual std::string decode(std::span<const TokenId> ids, bool skip_special = true) const = 0;

  virtual int32_t vocab_size() const = 0;

  /// The id whose exact spelling is `piece` (special tokens included), if there is one.
  virtual std::optional<TokenId> find(std::string_view piece) const = 0;

  virtual bool is_special(TokenId id) const = 0;

  /// A short description: "byte-level BPE (smollm), 49152 tokens".
  virtual std::string describe() const = 0;

  /// Ids of pieces of one prompt part: markup is parsed for special tokens, text between two special tokens
  /// is encoded as one run, so that the result is what encoding the joined text would give. A part that
  /// `continues` a prompt gets no space in front where the model puts one before the first word of a text.
  void encode_pieces(std::span<const TextPiece> pieces, Tokens& out, bool continues = false) const;

  std::optional<TokenId> bos;    ///< beginning of text
  std::optional<TokenId> eos;    ///< end of text
  Tokens end_tokens;             ///< every id that ends an answer: eos, end of turn, ...
  bool starts_with_bos = false;  ///< a prompt starts with bos

 protected:
  /// What stands before a run of text.
  enum class Before : uint8_t { nothing, special, text };

  /// Appends the ids of `spans`, and calls `encode_gap` for the text before, between and after them.
  template <class EncodeGap>
  static void encode_around(std::string_view text, std::span<const SpecialSpan> spans, Before before,
                            Tokens& out, EncodeGap encode_gap) {
    size_t at = 0;
    for (const SpecialSpan& span : spans) {
      if (span.begin > at) encode_gap(text.substr(at, span.begin - at), before);
      out.push_back(span.id);
      at = span.end;
      before = Before::special;
    }
    if (at < text.size()) encode_gap(text.substr(at), before);
  }

  /// Appends the special tokens spelled out in text[begin, end).
  virtual void find_special(std::string_view, size_t /*begin*/, size_t /*end*/,
                            std::vector<SpecialSpan>& /*out*/) const {}
  /// Appends the ids of a run of text, in which no special token is looked for.
  virtual void encode_run(std::string_view run, Before, Tokens& out) const { encode(run, false, out); }
};

}  // namespace sheaf
