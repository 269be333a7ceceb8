#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/segments/allowed_answers.h"

namespace sheaf {

/// A list of answers as a trie of token ids: at each node the tokens that go on are allowed, and where an
/// answer ends but others go on, the `stop` token too. Deciding stops at a node with no way on.
class AnswerTrie : public AllowedAnswers {
 public:
  /// `answers` are not empty and differ; `stop` ends an answer that is the beginning of another one; -1
  /// where there is no such answer.
  AnswerTrie(std::vector<Tokens> answers, TokenId stop);

  std::span<const TokenId> allowed(Node node) const override;
  /// Complete: no way on, or `token` is the stop token.
  Node advance(Node node, TokenId token) const override;
  /// The answers as they were given.
  const std::vector<Tokens>& answers() const { return answers_; }
  const Tokens* only_answer() const override { return answers_.size() == 1 ? &answers_.front() : nullptr; }
  /// Index of the answer spelled by `tokens` (a trailing stop token is ignored), or -1.
  int32_t find(std::span<const TokenId> tokens) const;
  int32_t longest() const { return longest_; }  ///< most tokens an answer can take, a stop token included

 private:
  struct Entry {
    int32_t first = 0;  ///< into tokens_ and next_
    int32_t count = 0;
  };
  std::vector<Tokens> answers_;
  std::vector<Entry> nodes_;
  Tokens tokens_;
  std::vector<Node> next_;
  TokenId stop_;
  int32_t longest_ = 0;
};

}  // namespace sheaf
