#pragma once
#include <map>
#include <mutex>

#include "core/segments/allowed_answers.h"
#include "core/text/pattern_table.h"
#include "core/tokenizer/token_bytes.h"
#include "core/tokenizer/token_trie.h"

namespace sheaf {

/// How the tokens of a tokenizer spell text.
struct TokenSpelling {
  explicit TokenSpelling(const Tokenizer& tokenizer) : trie(tokenizer), bytes(tokenizer) {}
  TokenTrie trie;
  TokenBytes bytes;
};

/// JSON literals whose text matches a pattern: in quotes, or bare as numbers are, and null where that is
/// allowed. A space may stand before them. Tokens may cut them anywhere. A literal in quotes is complete with
/// the closing quote, a bare one with the comma, brace or line break after it.
class PatternAnswers : public AllowedAnswers {
 public:
  struct Form {
    bool quoted = true, nullable = true;
  };
  /// Whether a text can be decoded under it; else it can only be checked.
  static bool has_form(const Pattern& pattern);
  /// Nothing where it cannot, or a letter has no token.
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
  Node follow(Node node, std::string_view text) const;
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

}  // namespace sheaf
