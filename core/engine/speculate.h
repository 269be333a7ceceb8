#pragma once
#include <array>
#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <vector>

#include "core/engine/draft.h"
#include "core/engine/draft_pay.h"
#include "core/engine/step_cost.h"
#include "core/engine/stop_rules.h"
#include "core/segments/stack.h"

namespace sheaf {

/// Speculative decoding: tokens that are likely to go on with an answer are computed in the same step as its
/// last one. Each is picked as without, so answers stay the same; those that agree are kept.
struct Speculation {
  bool lookup = false;     ///< what followed, in the text an answer sees, the tokens that it ends with
  Draft* draft = nullptr;  ///< or what a smaller model says
  int32_t most = 8;        ///< tokens proposed for one answer in a step
  bool sparing = true;     ///< only what should save time; otherwise whatever the step has room for
  /// If not 0, this share of the proposed tokens counts as right, whatever they are: to time a draft of a
  /// given quality.
  double assumed_right = 0;

  bool any() const { return lookup || draft; }
};

/// How an answer may go on.
struct Guess {
  Tokens tokens;
  std::vector<int32_t> kinds;  ///< of each token, what its chance follows from (Speculator)
  int32_t proposed = 0;        ///< the first ones, which are tokens of the step
};

/// An answer that is being decoded, for the choice of what to propose.
struct OpenAnswer {
  Guess* guess;      ///< null: it has none in this step
  double guessable;  ///< the share of its latest tokens that were guessed rightly
  int32_t group;     ///< answers that are waited for together: a prompt's, or all where no prompt waits
};

/// One of them that a draft follows.
struct DraftedAnswer {
  Draft::Line line;
  const Slot* slot;
  Guess* guess;
  bool known = true;  ///< the draft has followed it before
  double chance = 1;  ///< probability that all tokens of the guess are right
};

/// The step that is planned.
struct PlannedStep {
  int32_t answers = 0;     ///< of which it computes a token each
  double prompt_load = 0;  ///< of the prompts' tokens in it
  int32_t room = 0;        ///< for tokens more
};

/// Guesses the next tokens of answers, and knows how often it was right and what steps take.
class Speculator {
 public:
  /// `draft_cost`: of a token of the draft beside the model's, as a share, as far as is known.
  Speculator(const Speculation& options, const StopRules& rules, double draft_cost = 0);

  /// What is likely to follow `answer`, where decoding stands at `node` of the allowed answers.
  Guess guess(const Stack& stack, const Slot& slot, const Tokens& answer, AllowedAnswers::Node node);
  /// Before each step: whether the draft is to be asked.
  bool asks_draft();
  /// How many tokens an answer may still get.
  double tokens_left(const Slot& slot, const Tokens& answer) const {
    return pay_.tokens_left(std::ssize(answer), slot.max_tokens);
  }
  /// Whether the draft should follow answers that get so many tokens more, in steps of `answers`, and compute
  /// the `missing` tokens before them.
  bool follows(double left, int64_t missing, int32_t answers) const;
  /// What the draft says will follow the answers.
  void draft(std::span<DraftedAnswer> answers, const PlannedStep& step);
  /// Whether it ran out of memory, or its logits were not sound: then it is asked no more.
  bool draft_failed() const { return draft_failed_; }
  bool draft_unsound() const { return draft_unsound_; }
  /// Decides how much of the guesses is proposed.
  void share_out(std::span<const OpenAnswer> open, const PlannedStep& step);

  /// The next token of an answer turned out to be `right` or not.
  void count_guess(int32_t kind, bool right);
  void count_accepted() { gained_ += token_gain_; }
  void count_step(double load, double seconds) { cost_.count(load, seconds); }
  /// A complete answer, for others that go on alike.
  void remember(const Stack& stack, const Slot& slot, const Tokens& answer);

 private:
  static constexpr int32_t kLongest = 8;  ///< tokens that are compared
  /// Kinds: 0, the only token that is allowed; then by the number of equal tokens before it, in the text that
  /// the answer sees and in earlier answers; then by the probability that a draft gives it.
  static constexpr int32_t kFirstDrafted = 1 + 2 * kLongest;
  static constexpr int32_t kDrafted = 10;
  static constexpr int32_t kKinds = kFirstDrafted + kDrafted;
  struct Match {
    std::span<const TokenId> text;
    size_t next = 0;  ///< in it
    int32_t length = 0;
    bool earlier = false;  ///< in an earlier answer
  };
  struct Rate {
    double right = 0, all = 0;
  };

  Match find(const Stack& stack, const Slot& slot) const;
  static void look(std::span<const TokenId> text, std::span<const TokenId> tail, bool earlier, Match& best);
  std::vector<double> worth_of_tokens(std::span<const OpenAnswer> open, int32_t answers) const;
  bool ends(const Slot& slot, std::span<const TokenId> answer) const;
  double chance(int32_t kind) const;
  double added_seconds(const PlannedStep& step, double proposed, double more) const;
  void ask_rounds(std::span<DraftedAnswer> answers, const PlannedStep& step);
  bool goes_on(const DraftedAnswer& answer) const;
  bool add_drafted(DraftedAnswer& answer, const Picked& picked) const;
  bool pays(std::span<DraftedAnswer* const> active, const PlannedStep& step, double proposed) const;

  Speculation options_;
  const StopRules& rules_;
  StepCost cost_;
  std::array<Rate, kKinds> rates_;
  std::deque<Tokens> answers_;  ///< the latest complete ones, each after the end of its prompt
  Tokens own_;                  ///< the prompt and the answer as it is guessed
  DraftPay pay_;
  bool draft_failed_ = false;
  bool draft_unsound_ = false;
  double token_gain_ = 0;  ///< seconds that an accepted token saves,
  double gained_ = 0;      ///< and those of the last step
  double plain_ = 0;  ///< seconds of the last step that a draft was asked for, without proposals; 0: none
  double spent_ = 0;  ///< on the draft and the proposals of that
};

}  // namespace sheaf
