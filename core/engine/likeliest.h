#pragma once
#include <limits>
#include <queue>

#include "core/engine/answer.h"

namespace sheaf {

/// Finds the likeliest of the answers that a slot allows, its end included, among those of at most
/// Slot::max_tokens tokens. An answer is never likelier than its beginning, so a beginning that is less
/// likely than a complete answer is not followed. Of the others the likeliest is, and then its likeliest
/// continuation, as long as it may win: first the greedy answer. Wherever an answer may end, it counts as
/// complete.
///
/// An engine computes path() and asks for the log-probabilities of all tokens that may follow it (room()),
/// then calls take(). One path lies in the pool at a time: what it shares with the one before stays there.
class LikeliestSearch {
 public:
  explicit LikeliestSearch(const Slot& slot);

  const Tokens& path() const { return path_; }       ///< tokens whose continuations are wanted next
  size_t shared() const { return shared_; }          ///< how many of them are those of the path before
  AllowedAnswers::Node node() const { return at_; }  ///< where the path ends among the allowed answers
  /// Where the log-probabilities of the tokens that may follow go.
  float* room(std::span<const TokenId> allowed);
  /// Takes them. False once the likeliest answer is found.
  bool take();

  /// The answer, once it is found.
  Answer answer() const;
  int64_t computed() const { return computed_; }  ///< tokens that the engine computed
  bool cut() const { return cut_; }               ///< ended at its limit: there may be a likelier answer

 private:
  static constexpr double kNever = -std::numeric_limits<double>::infinity();

  /// A beginning of an answer that was not followed yet.
  struct Branch {
    double bound = kNever;  ///< on the score of all answers that begin so
    int64_t number = 0;     ///< decides between equal bounds
    int32_t parent = 0;     ///< into steps_
    TokenId token = -1;
    AllowedAnswers::Node at = 0;  ///< after the token
    double logprob = 0;           ///< of all its tokens
    bool operator<(const Branch& other) const {
      return bound != other.bound ? bound < other.bound : number > other.number;
    }
  };
  /// A beginning that was followed.
  struct Step {
    int32_t parent;
    TokenId token;
    double logprob;
    int32_t depth;
  };
  struct Complete {
    Tokens tokens;
    double logprob = kNever, score = kNever;
  };

  double score(double logprob, size_t tokens) const;
  double bound(double logprob) const;
  TokenId next_of_null() const;
  bool follow_next();
  void follow(const Branch& branch);
  void complete(const Branch& branch);
  void keep_longest(const Branch& branch);
  void drop(const Branch& branch);
  Tokens tokens_of(int32_t step, TokenId last) const;

  const Slot& slot_;
  AnswerSearch options_;
  Tokens null_;  ///< null's tokens; empty: it is not watched
  double bias_;

  std::vector<Step> steps_;
  int32_t current_ = 0;  ///< the step whose continuations are wanted
  Tokens path_;
  size_t shared_ = 0;
  AllowedAnswers::Node at_ = AllowedAnswers::root;
  Tokens allowed_;
  std::vector<float> listed_;

  std::priority_queue<Branch> open_;
  Complete best_;        ///< the likeliest so far
  Complete best_value_;  ///< of those that are not null
  Complete longest_;     ///< the first beginning that was followed to the limit of its length
  double null_logprob_ = kNever;
  bool null_known_ = false;        ///< all its tokens are counted in null_logprob_
  double dropped_ = kNever;        ///< the largest log-probability of what was not followed, null apart
  double dropped_bound_ = kNever;  ///< the largest bound of that
  int64_t computed_ = 0, branches_ = 0;
  bool cut_ = false;
};

}  // namespace sheaf
