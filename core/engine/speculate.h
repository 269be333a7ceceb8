#pragma once
#include <array>
#include <cstddef>
#include <deque>
#include <list>

#include "core/engine/engine_stats.h"
#include "core/engine/flight.h"
#include "core/engine/stop_rules.h"

namespace sheaf {

/// How long steps take by their load, as seen in this run. A load of 1 is a token whose next one is picked.
class StepCost {
 public:
  void count(double load, double seconds);
  /// What a step would take. Between loads that were seen and below them, a straight line: time grows faster
  /// with the load the larger it is, so that what more tokens add is rather guessed too high than too low.
  double seconds(double load) const;
  bool known() const { return steps_ > 0; }

 private:
  struct Seen {
    double load = 0;
    double seconds = 0;
    int64_t step = 0;  ///< the last one, counted from 1; 0: none
  };
  static size_t place(double load);
  const Seen* nearest(double load, bool above) const;

  std::array<Seen, 80> seen_ = {};  ///< by load: whole numbers first, then four to a doubling
  int64_t steps_ = 0;
};

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

  void count_round(double lines, double seconds) { rounds_.count(lines, seconds); }
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

  double plain_ = 0, spent_ = 0, gained_ = 0;  ///< seconds of the last steps
  int32_t steps_ = 0;                          ///< number of the last steps
  int32_t pause_ = 0;                          ///< steps until it is asked again
  int32_t next_pause_ = kFirstPause;
};

/// Speculative decoding: tokens that an answer is likely to have next are computed in the same step as its
/// last one. Each is picked as without, so answers stay the same; those that agree are kept.
struct Speculation {
  bool lookup = false;     ///< what followed, in the text an answer sees, the tokens that it ends with
  Draft* draft = nullptr;  ///< or what a smaller model says
  int32_t most = 8;        ///< tokens proposed for one answer in a step
  bool sparing = true;     ///< only what should save time; otherwise whatever the step has room for
  /// If not 0, this share of the proposed tokens counts as right, whatever they are: to time a draft of a
  /// given quality.
  double assumed_right = 0;
  uint64_t seed = 0;  ///< decides which proposed tokens are assumed right; the engine's

  bool any() const { return lookup || draft; }
};

/// An answer among which the choice of what to propose is made.
struct OpenAnswer {
  Guess* guess;      ///< null: it has none in this step
  double guessable;  ///< the share of its latest tokens that were guessed rightly
  int32_t group;     ///< answers that are waited for together: a prompt's, or all where no prompt waits
};

/// An answer that a draft follows.
struct DraftedAnswer {
  Draft::Line line;
  const Slot* slot;
  Guess* guess;
  bool known = true;  ///< the draft has followed it before
  double chance = 1;  ///< probability that all tokens of the guess are right
};

/// The step that is planned.
struct PlannedStep {
  int32_t answers = 0;     ///< answers of which it computes a token each
  double prompt_load = 0;  ///< load of the prompts' tokens in it (StepCost)
  int32_t room = 0;        ///< tokens that it could hold besides
};

/// Guesses the next tokens of answers, and knows how often it was right and what steps take. An engine calls
/// propose() before a step, verify() for each pick, and remember() at the end of an answer.
class Speculator {
 public:
  /// `stats` gets what is proposed and accepted, and what the draft does. `draft_cost`: of a token of the
  /// draft beside the model's, as a share, as far as is known.
  Speculator(const Speculation& options, const StopRules& rules, EngineStats& stats, double draft_cost = 0);

  /// Guesses further tokens of the waiting answers and decides how many the step computes. `prompts_wait`:
  /// others take the place of prompts that are complete. Returns the seconds that the draft took.
  double propose(std::list<Flight>& flights, bool prompts_wait, const PlannedStep& step);
  /// Compares the pick after `at` rightly proposed tokens with the guess; where that counts as right, the
  /// pick becomes it.
  bool verify(OpenSlot& slot, const Guess& guess, size_t at, Picked& picked);
  /// A complete answer, from which those of others may be guessed.
  void remember(const Stack& stack, const Slot& slot, const Tokens& answer);
  void count_step(double load, double seconds) { cost_.count(load, seconds); }

  /// What is likely to follow `answer`, where decoding stands at `node` of the allowed answers.
  Guess guess(const Stack& stack, const Slot& slot, const Tokens& answer, AllowedAnswers::Node node);
  /// Before each step: whether the draft is to be asked.
  bool asks_draft();
  /// What the draft says will follow the answers; returns the seconds that it took.
  double draft(std::span<DraftedAnswer> answers, const PlannedStep& step);
  /// Decides how much of the guesses is proposed.
  void share_out(std::span<const OpenAnswer> open, const PlannedStep& step);

  /// The next token of an answer turned out to be `right` or not.
  void count_guess(int32_t kind, bool right);

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
  bool ends(const Slot& slot, std::span<const TokenId> answer) const {
    return rules_.ends_text(answer.back()) || rules_.ends_answer(slot, answer);
  }
  double chance(int32_t kind) const;
  double added_seconds(const PlannedStep& step, double proposed, double more) const;
  bool follow(Flight& flight, int32_t answers);
  bool worth_following(const Flight& flight, int32_t answers) const;
  void ask_rounds(std::span<DraftedAnswer> answers, const PlannedStep& step);
  bool goes_on(const DraftedAnswer& answer) const;
  bool add_drafted(DraftedAnswer& answer, const Picked& picked) const;
  bool pays(std::span<DraftedAnswer* const> active, const PlannedStep& step, double proposed) const;

  Speculation options_;
  const StopRules& rules_;
  EngineStats& stats_;
  StepCost cost_;
  std::array<Rate, kKinds> rates_;
  std::deque<Tokens> answers_;  ///< the latest complete ones, each after the end of its prompt
  Tokens own_;                  ///< the prompt and the answer as it is guessed
  DraftPay pay_;
  double token_gain_ = 0;  ///< seconds that an accepted token saves
  double gained_ = 0;      ///< seconds that the last step's accepted tokens save
  double plain_ = 0;  ///< seconds of the last step that a draft was asked for, without proposals; 0: none
  double spent_ = 0;  ///< seconds of the draft and of the proposals in that step
};

}  // namespace sheaf
