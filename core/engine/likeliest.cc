#include "core/engine/likeliest.h"

#include <algorithm>
#include <cmath>

#include "core/base/error.h"

namespace sheaf {

LikeliestSearch::LikeliestSearch(const Slot& slot)
    : slot_(slot),
      options_(*slot.search),
      null_(slot.watch ? slot.watch->null : Tokens()),
      bias_(slot.watch ? static_cast<double>(slot.watch->bias) : 0),
      steps_{{-1, -1, 0, 0}} {}

float* LikeliestSearch::room(std::span<const TokenId> allowed) {
  allowed_.assign(allowed.begin(), allowed.end());
  listed_.assign(allowed.size(), 0);
  return listed_.data();
}

/// Of a complete answer, without the bias of null.
double LikeliestSearch::score(double logprob, size_t tokens) const {
  return options_.length_norm == 0
             ? logprob
             : logprob / std::pow(static_cast<double>(tokens), static_cast<double>(options_.length_norm));
}

/// Of all answers that begin with so much: the longest divides it most.
double LikeliestSearch::bound(double logprob) const {
  return score(logprob, static_cast<size_t>(slot_.max_tokens));
}

/// The next token of null; -1 where the path is another answer.
TokenId LikeliestSearch::next_of_null() const {
  const bool follows = path_.size() < null_.size() && std::equal(path_.begin(), path_.end(), null_.begin());
  return follows ? null_[path_.size()] : -1;
}

Tokens LikeliestSearch::tokens_of(int32_t step, TokenId last) const {
  Tokens tokens{last};
  for (; steps_[step].parent >= 0; step = steps_[step].parent) tokens.push_back(steps_[step].token);
  std::ranges::reverse(tokens);
  return tokens;
}

bool LikeliestSearch::take() {
  computed_ += static_cast<int64_t>(path_.size() - shared_);
  const TokenId next_of_null = this->next_of_null();
  const auto before = steps_[current_];
  std::vector<Branch> branches;
  for (size_t i = 0; i < allowed_.size(); ++i) {
    const double logprob = before.logprob + static_cast<double>(listed_[i]);
    Branch branch{bound(logprob), branches_++, current_, allowed_[i], 0, logprob};
    if (allowed_[i] == next_of_null) {
      null_logprob_ = logprob;
      null_known_ = path_.size() + 1 == null_.size();
      branch.bound = -kNever;  // it is followed to its end, for its probability
    }
    branches.push_back(branch);
  }
  // Likelier ones first: a complete one among them spares looking at the others.
  std::ranges::sort(branches, [](const Branch& a, const Branch& b) { return b < a; });
  std::optional<Branch> likeliest;
  for (Branch& branch : branches) {
    if (branch.bound <= best_.score) {
      drop(branch);
      continue;
    }
    branch.at = slot_.allowed->advance(at_, branch.token);
    if (branch.at < 0)
      complete(branch);
    else if (before.depth + 1 >= slot_.max_tokens)
      keep_longest(branch);
    else if (!likeliest)
      likeliest = branch;
    else
      open_.push(branch);
  }
  if (!likeliest) return follow_next();
  // The likeliest continuation is followed at once, because its beginning lies in the pool.
  if (likeliest->bound <= best_.score || computed_ >= options_.most_tokens) {
    open_.push(*likeliest);
    return follow_next();
  }
  follow(*likeliest);
  return true;
}

void LikeliestSearch::keep_longest(const Branch& branch) {
  if (longest_.tokens.empty()) longest_ = {tokens_of(branch.parent, branch.token), branch.logprob, 0};
}

void LikeliestSearch::drop(const Branch& branch) {
  dropped_ = std::max(dropped_, branch.logprob);
  dropped_bound_ = std::max(dropped_bound_, branch.bound);
}

/// Follows the likeliest beginning that may lead to a likelier answer; false where there is none.
bool LikeliestSearch::follow_next() {
  for (; !open_.empty(); open_.pop()) {
    const Branch branch = open_.top();
    const bool wins = branch.bound > best_.score, any = !best_.tokens.empty() || !longest_.tokens.empty();
    if (wins && (computed_ < options_.most_tokens || !any)) {
      open_.pop();
      follow(branch);
      return true;
    }
    cut_ = cut_ || wins;
    if (branch.bound < -kNever) drop(branch);
  }
  return false;
}

void LikeliestSearch::follow(const Branch& branch) {
  const Tokens path = tokens_of(branch.parent, branch.token);
  shared_ = static_cast<size_t>(std::ranges::mismatch(path_, path).in1 - path_.begin());
  path_ = path;
  at_ = branch.at;
  current_ = static_cast<int32_t>(steps_.size());
  steps_.push_back({branch.parent, branch.token, branch.logprob, static_cast<int32_t>(path.size())});
}

void LikeliestSearch::complete(const Branch& branch) {
  Complete one{tokens_of(branch.parent, branch.token), branch.logprob, 0};
  one.score = score(one.logprob, one.tokens.size());
  if (!null_.empty() && one.tokens == null_) {
    one.score += bias_;
  } else {
    if (one.score > best_value_.score) std::swap(one, best_value_);
    // What is no longer the best, or never was.
    dropped_ = std::max(dropped_, one.logprob);
    one = best_value_;
  }
  if (one.score > best_.score) best_ = std::move(one);
}

Answer LikeliestSearch::answer() const {
  const bool complete = !best_.tokens.empty();
  const Complete& found = complete ? best_ : longest_;
  Answer answer;
  answer.tokens = found.tokens;
  answer.logprob = found.logprob;
  answer.ending = !complete ? Ending::length : cut_ ? Ending::searched : Ending::chosen;
  if (!slot_.watch) return answer;
  const bool is_null = !null_.empty() && answer.tokens == null_;
  answer.alternative = is_null ? std::max(dropped_, best_value_.logprob) : dropped_;
  answer.null_logprob = null_logprob_;
  if (null_.empty()) return answer;
  const double of_null = score(null_logprob_, null_.size());
  answer.null_margin = !null_known_
                           ? -kNever
                           : (is_null ? std::max(best_value_.score, dropped_bound_) : found.score) - of_null;
  return answer;
}

}  // namespace sheaf
