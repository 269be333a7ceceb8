#pragma once
#include <cstdint>

#include "core/engine/step_cost.h"

namespace sheaf {

/// What asking a draft costs and saves, as seen in this run.
class DraftPay {
 public:
  /// `cost`: of a token beside the model's, as a share, until it is measured.
  explicit DraftPay(double cost) : cost_(cost) {}

  /// Before each step: whether to ask. Where it did not pay it is asked again after a while.
  bool due();
  /// Of a round that gives each of `lines` answers a token. `plain`: what a step of the model itself takes.
  double round_seconds(double lines, double plain) const;
  /// How many tokens an answer may still get that has `decoded` and can have `most`.
  double tokens_left(int64_t decoded, int64_t most) const;
  /// Whether what is saved on answers that take `plain` seconds without it is worth computing the `missing`
  /// tokens before them, which take the model itself `compute` seconds. `share` of the time should be saved.
  bool worth_following(double plain, double share, int64_t missing, double compute) const;
  double right() const { return right_; }  ///< the share of tokens that were right

  void count_round(double lines, double seconds);
  void count_prompts(int64_t tokens, double seconds);
  void count_token(bool right);
  /// A step for which it was asked: what it takes without proposals, what they cost, and what those that were
  /// accepted save.
  void count_step(double plain, double spent, double gained);
  void count_answer(int64_t tokens);

 private:
  static constexpr int32_t kFirstPause = 64;  ///< steps
  double cost_;
  StepCost rounds_;
  double right_ = 0.75;
  double prompt_seconds_ = 0;  ///< of a token; 0: not known
  double answer_tokens_ = 0;   ///< of complete answers; 0: not known
  double saved_ = -1;          ///< of the time that answers take, as a share; negative: not known

  double plain_ = 0, spent_ = 0, gained_ = 0;  ///< of the last steps,
  int32_t steps_ = 0;                          ///< and their number
  int32_t pause_ = 0;                          ///< steps until it is asked again
  int32_t next_pause_ = kFirstPause;
};

}  // namespace sheaf
