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
      steps_{{-1, -1, AllowedAnswers::root, 0, 0}} {}

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

/// Of all answers that begin with so much: none is longer than the longest, which divides most.
double LikeliestSearch::bound(double logprob) const {
  return score(logprob, static_cast<size_t>(slot_.max_tokens));
}

/// Whether the path is how null begins, and null goes on.
bool LikeliestSearch::follows_null() const {
  return path_.size() < null_.size() && std::equal(path_.begin(), path_.end(), null_.begin());
}

Tokens LikeliestSearch::tokens_of(int32_t step, TokenId last) const {
  Tokens tokens{last};
  for (; steps_[step].parent >= 0; step = steps_[step].parent) tokens.push_back(steps_[step].token);
  std::ranges::reverse(tokens);
  return tokens;
}

bool LikeliestSearch::take() {
  computed_ += static_cast<int64_t>(path_.size() - shared_);
  if (follows_null()) {
    const auto next = std::ranges::lower_bound(allowed_, null_[path_.size()]);
    if (next != allowed_.end() && *next == null_[path_.size()]) {
      null_logprob_ = steps_[current_].logprob + static_cast<double>(listed_[next - allowed_.begin()]);
      null_known_ = path_.size() + 1 == null_.size();
    }
  }
  return greedy_phase_ ? take_greedy() : take_branches();
}

/// The greedy answer goes on; the other ways are kept.
bool LikeliestSearch::take_greedy() {
  const bool null_follows = follows_null();
  const auto picked = [&](size_t i) {
    const bool null_next = null_follows && allowed_[i] == null_[path_.size()];
    return static_cast<double>(listed_[i]) + (null_next ? bias_ : 0);
  };
  size_t best = 0;
  for (size_t i = 1; i < allowed_.size(); ++i)
    if (picked(i) > picked(best)) best = i;
  const double before = steps_[current_].logprob;
  Branch taken;
  for (size_t i = 0; i < allowed_.size(); ++i) {
    Branch branch{bound(before + static_cast<double>(listed_[i])), branches_++, current_, allowed_[i],
                  before + static_cast<double>(listed_[i])};
    // Null is looked for to its end, for its probability.
    if (null_follows && allowed_[i] == null_[path_.size()]) branch.bound = -kNever;
    if (i == best)
      taken = branch;
    else
      open_.push(branch);
  }
  greedy_ = tokens_of(current_, taken.token);
  greedy_logprob_ = taken.logprob;
  if (go(taken)) return true;
  greedy_phase_ = false;
  greedy_tokens_ = computed_;
  return next_branch();
}

bool LikeliestSearch::take_branches() {
  const bool null_follows = follows_null();
  const double before = steps_[current_].logprob;
  Branch best;
  for (size_t i = 0; i < allowed_.size(); ++i) {
    Branch branch{bound(before + static_cast<double>(listed_[i])), branches_++, current_, allowed_[i],
                  before + static_cast<double>(listed_[i])};
    if (null_follows && allowed_[i] == null_[path_.size()]) branch.bound = -kNever;
    if (branch.bound <= best_.score) {
      drop(branch);
      continue;
    }
    if (best.token < 0) {
      best = branch;
      continue;
    }
    if (best < branch) std::swap(best, branch);
    open_.push(branch);
  }
  if (best.token < 0) return next_branch();
  // Followed at once, because its beginning lies in the pool.
  if (computed_ - greedy_tokens_ >= options_.most_tokens)
    open_.push(best);
  else if (go(best))
    return true;
  return next_branch();
}

void LikeliestSearch::drop(const Branch& branch) {
  dropped_ = std::max(dropped_, branch.logprob);
  dropped_bound_ = std::max(dropped_bound_, branch.bound);
}

/// Follows the likeliest beginning that may lead to a likelier answer; false where there is none.
bool LikeliestSearch::next_branch() {
  while (!open_.empty()) {
    const Branch branch = open_.top();
    if (branch.bound <= best_.score) break;
    if (computed_ - greedy_tokens_ >= options_.most_tokens) {
      cut_ = true;
      break;
    }
    open_.pop();
    if (go(branch)) return true;
  }
  for (; !open_.empty(); open_.pop())
    if (open_.top().bound < -kNever) drop(open_.top());
  return false;
}

/// Makes it the path; false where it is a complete answer, or no answer can be complete in time.
bool LikeliestSearch::go(const Branch& branch) {
  const Step& before = steps_[branch.parent];
  const AllowedAnswers::Node at = slot_.allowed->advance(before.at, branch.token);
  const int32_t depth = before.depth + 1;
  if (at < 0) {
    complete(branch);
    return false;
  }
  if (depth >= slot_.max_tokens) return false;
  const Tokens path = tokens_of(branch.parent, branch.token);
  const auto differ = std::ranges::mismatch(path_, path);
  shared_ = static_cast<size_t>(differ.in1 - path_.begin());
  // The last token is computed again where the path got shorter: its continuations are wanted.
  shared_ = std::min(shared_, path.size() - 1);
  path_ = path;
  at_ = at;
  current_ = static_cast<int32_t>(steps_.size());
  steps_.push_back({branch.parent, branch.token, at, branch.logprob, depth});
  return true;
}

void LikeliestSearch::complete(const Branch& branch) {
  Complete one{tokens_of(branch.parent, branch.token), branch.logprob, 0};
  one.score = score(one.logprob, one.tokens.size());
  if (!null_.empty() && one.tokens == null_) {
    one.score += bias_;
  } else if (one.score > best_value_.score) {
    dropped_ = std::max(dropped_, best_value_.logprob);
    best_value_ = one;
  } else {
    dropped_ = std::max(dropped_, one.logprob);
  }
  if (one.score > best_.score) best_ = std::move(one);
}

Answer LikeliestSearch::answer() const {
  Answer answer;
  if (best_.tokens.empty()) {
    answer.tokens = greedy_;
    answer.logprob = greedy_logprob_;
    answer.ending = Ending::length;
  } else {
    answer.tokens = best_.tokens;
    answer.logprob = best_.logprob;
    answer.ending = cut_ ? Ending::searched : Ending::chosen;
  }
  if (!slot_.watch) return answer;
  answer.alternative = dropped_;
  const bool is_null = !null_.empty() && answer.tokens == null_;
  if (is_null) answer.alternative = std::max(dropped_, best_value_.logprob);
  answer.null_logprob = null_logprob_;
  if (null_.empty()) return answer;
  if (!null_known_) {
    answer.null_margin = -kNever;
    return answer;
  }
  const double of_null = score(null_logprob_, null_.size());
  answer.null_margin = (is_null ? std::max(best_value_.score, dropped_bound_) : best_.score) - of_null;
  return answer;
}

}  // namespace sheaf
