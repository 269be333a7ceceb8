#pragma once
#include <deque>
#include <map>
#include <mutex>

#include "core/segments/allowed_answers.h"
#include "core/task/prompt_text.h"
#include "core/text/pattern.h"
#include "core/tokenizer/token_trie.h"

namespace sheaf {

/// Whether a copied value may end before byte `at` of the document, where a character begins or the document
/// ends: behind a whole word, but not behind punctuation that belongs to what follows it, as in "(large)".
bool may_end_value(std::string_view document, size_t at);

/// How the tokens of a tokenizer spell text.
struct TokenSpelling {
  explicit TokenSpelling(const Tokenizer& tokenizer)
      : trie(tokenizer), bytes(tokenizer), null(encode_part(tokenizer, " null")) {}
  TokenTrie trie;
  TokenBytes bytes;
  Tokens null;          ///< the answer null
  Tokens closers = {};  ///< ascending; tokens that end a copied text without quotes; none: it is in quotes
  bool spaced = true;   ///< a space stands before a copied text without quotes
};

/// JSON literals whose text matches a pattern: in quotes, or bare as numbers are, and null where that is
/// allowed. A space may stand before them. Tokens may cut them anywhere. A literal in quotes is complete with
/// the closing quote, a bare one with the comma, brace or line break after it.
class PatternAnswers : public AllowedAnswers {
 public:
  struct Form {
    bool quoted = true, nullable = true;
  };
  /// Nothing where the pattern can only be checked (can_decode), or a letter has no token.
  static std::shared_ptr<const PatternAnswers> make(std::shared_ptr<const TokenSpelling> spelling,
                                                    const Pattern& pattern, Form form);

  PatternAnswers(std::shared_ptr<const TokenSpelling> spelling, PatternTable table, Form form,
                 std::string name);

  std::string name() const override { return name_; }
  std::span<const TokenId> allowed(Node node) const override;
  Node advance(Node node, TokenId token) const override;

 private:
  // Nodes: the start, after a space, after 1 to 3 letters of null, and the states of the table from kText on.
  static constexpr Node kSpace = 1, kNull = 2, kText = 5, kDone = -1, kNowhere = -2;

  Node after(Node node, char letter) const;
  void add_tokens(TokenTrie::Node at, Node node, Tokens& tokens) const;

  std::shared_ptr<const TokenSpelling> spelling_;
  PatternTable table_;
  Form form_;
  std::string name_;
  // Prompts are planned while others are decoded, and both look here.
  mutable std::mutex mutex_;
  mutable std::vector<Tokens> tokens_;  ///< by node; none as long as they were not looked for
};

/// The answers of each pattern, made once.
class PatternForms {
 public:
  explicit PatternForms(const Tokenizer& tokenizer) : tokenizer_(tokenizer) {}

  /// Nothing where a value can only be checked, not decoded under the pattern.
  std::shared_ptr<const PatternAnswers> find(const Pattern& pattern, PatternAnswers::Form form = {});

 private:
  const Tokenizer& tokenizer_;
  std::shared_ptr<const TokenSpelling> spelling_;
  std::map<std::string, std::shared_ptr<const PatternAnswers>> forms_;  ///< by form and pattern
};

/// Refuses a tokenizer that cannot write a text in quotes or null.
std::shared_ptr<const TokenSpelling> make_span_tokens(const TaskContext& context);
/// For texts without quotes, which a line break or the end of the text ends. `null`: as it is written there,
/// after a space or not. Refuses a tokenizer that cannot write one or null.
std::shared_ptr<const TokenSpelling> make_bare_span_tokens(const TaskContext& context, Tokens null,
                                                           bool spaced);

/// Where each of a document's tokens begins in its text, and where the last one ends, in bytes. Fewer where
/// the tokenizer changed what it read: behind that no place is known.
std::vector<size_t> token_places(const TokenSpelling& spelling, std::string_view text,
                                 std::span<const TokenId> tokens);

/// The answers that copy a text from a document: null, or a JSON string whose text stands on one line of the
/// document, from the beginning of a word to the end of one, without spaces around it. Letters A to Z may
/// have the other case, as models like to write them: bind_span() gives them the document's. Control
/// characters end a line. Tokens may cut the text anywhere. An answer is complete with the quote that closes
/// it; a comma, brace or line break may be in that token too.
/// Without quotes (TokenSpelling::closers) it is complete with a closer, and null with its own last token.
class SpanAnswers : public AllowedAnswers {
 public:
  /// Only what stands in bytes [begin, end) of `document`, which is valid UTF-8, is copied.
  SpanAnswers(std::shared_ptr<const TokenSpelling> tokens, std::string_view document, size_t begin,
              size_t end);

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
  bool quoted() const { return tokens_->closers.empty(); }
  void add_bare_ways(At place, Ways& ways) const;
  void add_closers(TokenTrie::Node node, Ways& ways) const;

  std::shared_ptr<const TokenSpelling> tokens_;
  std::string text_;            ///< the document as it is written in JSON strings; newlines between lines
  std::vector<size_t> starts_;  ///< where a value may start
  std::vector<bool> ends_;      ///< [text_ + 1] whether one may end before the byte
  std::vector<bool> leads_on_;  ///< [text_ + 1] whether tokens lead from there to an end
  // Made as answers are decoded.
  mutable std::deque<State> states_;
  mutable std::map<std::vector<At>, Node> known_;
};

}  // namespace sheaf
