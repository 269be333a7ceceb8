#pragma once
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>

#include "core/base/token.h"

namespace sheaf {

class AnswerTrie;

/// The only answers that a question may have, from the task to the pick. Decoding walks them from the root:
/// at each node some tokens are allowed. Nodes may be made while they are walked, so one thread at a time
/// walks the answers of a document.
class AllowedAnswers {
 public:
  using Node = int32_t;
  static constexpr Node root = 0;

  virtual ~AllowedAnswers() = default;
  /// Allowed next tokens, ascending, at least one.
  virtual std::span<const TokenId> allowed(Node node) const = 0;
  /// The node after `token`, which is allowed; -1 once the answer is complete.
  virtual Node advance(Node node, TokenId token) const = 0;
  /// Where the answers are listed one by one: the list.
  virtual const AnswerTrie* list() const { return nullptr; }
  /// Differs where the answers do; empty for a list, and for answers that a record's document decides.
  virtual std::string name() const { return {}; }
};

/// A list of answers as a trie of token ids: at each node the next tokens are allowed, and where an
/// answer ends but longer ones do not, the `stop` token too. Deciding stops at a node without children.
class AnswerTrie : public AllowedAnswers {
 public:
  /// `answers` are not empty and differ; `stop` ends an answer that is the beginning of another one; -1
  /// where there is no such answer. `scored`: the likeliest as a whole is wanted, so each is decoded by
  /// itself.
  AnswerTrie(std::vector<Tokens> answers, TokenId stop, bool scored = false);

  std::span<const TokenId> allowed(Node node) const override;
  /// Complete: no way on, or `token` is the stop token.
  Node advance(Node node, TokenId token) const override;
  /// The answers as they were given.
  const std::vector<Tokens>& answers() const { return answers_; }
  /// Each of the answers by itself, where they are scored.
  const std::vector<std::shared_ptr<const AnswerTrie>>& options() const { return options_; }
  const AnswerTrie* list() const override { return this; }
  /// Index of the answer spelled by `tokens` (a trailing stop token is ignored), or -1.
  int32_t find(std::span<const TokenId> tokens) const;
  int32_t longest() const { return longest_; }  ///< most tokens an answer can take, a stop token included

 private:
  struct Entry {
    int32_t first = 0;  ///< into tokens_ and next_
    int32_t count = 0;
  };
  std::vector<Tokens> answers_;
  std::vector<std::shared_ptr<const AnswerTrie>> options_;
  std::vector<Entry> nodes_;
  Tokens tokens_;
  std::vector<Node> next_;
  TokenId stop_;
  int32_t longest_ = 0;
};

/// Answers that are made when they are first asked for.
class LateAnswers : public AllowedAnswers {
 public:
  using Make = std::function<std::unique_ptr<AllowedAnswers>()>;
  explicit LateAnswers(Make make) : make_(std::move(make)) {}

  std::span<const TokenId> allowed(Node node) const override { return made().allowed(node); }
  Node advance(Node node, TokenId token) const override { return made().advance(node, token); }

 private:
  const AllowedAnswers& made() const {
    if (!made_) made_ = std::exchange(make_, nullptr)();
    return *made_;
  }

  mutable Make make_;
  mutable std::unique_ptr<AllowedAnswers> made_;
};

}  // namespace sheaf
