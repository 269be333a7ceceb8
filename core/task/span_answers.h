#pragma once
#include <cstddef>
#include <deque>
#include <map>
#include <string_view>

#include "core/segments/allowed_answers.h"
#include "core/task/task.h"
#include "core/tokenizer/token_trie.h"

namespace sheaf {

/// What all documents share: how tokens spell a text, and the answer null.
struct SpanTokens {
  TokenTrie trie;
  Tokens null;
};

/// Refuses a tokenizer that cannot write a text in quotes or null.
std::shared_ptr<const SpanTokens> make_span_tokens(const TaskContext& context);

/// Where each of a document's tokens begins in its text, and where the last one ends, in bytes. Fewer where
/// the tokenizer changed what it read: behind that no place is known.
std::vector<size_t> token_places(const Tokenizer& tokenizer, std::string_view text,
                                 std::span<const TokenId> tokens);

/// The answers that copy a text from a document: null, or a JSON string whose text stands on one line of the
/// document, from the beginning of a word to the end of one, without spaces around it. Letters A to Z may
/// have the other case, as models like to write them: bind_span() gives them the document's. Control
/// characters end a line. Tokens may cut the text anywhere. An answer is complete with the quote that closes
/// it; a comma, brace or line break may be in that token too.
class SpanAnswers : public AllowedAnswers {
 public:
  /// Only what stands in bytes [begin, end) of `document`, which is valid UTF-8, is copied.
  SpanAnswers(std::shared_ptr<const SpanTokens> tokens, std::string_view document, size_t begin, size_t end);

  std::span<const TokenId> allowed(Node node) const override;
  Node advance(Node node, TokenId token) const override;

 private:
  /// Where an answer may have come to: a byte of text_, or one of the places below.
  using At = int32_t;
  static constexpr At kStart = -1, kSpace = -2, kOpen = -3, kDone = -4, kNull = -5;  // kNull - tokens of null

  /// All places where the answer so far may have come to, and the ways on.
  struct State {
    std::vector<At> places;      ///< ascending
    Tokens tokens;               ///< allowed ones, ascending; none as long as they were not looked for
    std::vector<size_t> firsts;  ///< per token, its first entry in `next`, and the end of the last
    std::vector<At> next;        ///< places after the tokens
  };
  using Ways = std::vector<std::pair<TokenId, At>>;

  void write_text(std::string_view document, size_t begin, size_t end);
  void find_dead_ends();
  Node find_state(std::vector<At> places) const;
  const State& expanded(Node node) const;
  void add_ways(At place, Ways& ways) const;
  void follow(TokenTrie::Node node, size_t at, Ways& ways) const;
  void follow_from(TokenTrie::Node node, size_t start, Ways& ways) const;
  void add_closers(TokenTrie::Node node, Ways& ways) const;

  std::shared_ptr<const SpanTokens> tokens_;
  std::string text_;            ///< the document as it is written in JSON strings; newlines between lines
  std::vector<size_t> starts_;  ///< where a value may start
  std::vector<bool> ends_;      ///< [text_ + 1] whether one may end before the byte
  std::vector<bool> leads_on_;  ///< [text_ + 1] whether tokens lead from there to an end
  // Made as answers are decoded.
  mutable std::deque<State> states_;
  mutable std::map<std::vector<At>, Node> known_;
};

}  // namespace sheaf
