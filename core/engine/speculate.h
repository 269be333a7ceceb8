#pragma once
#include <array>
#include <cstdint>
#include <deque>
#include <span>
#include <vector>

#include "core/engine/step_cost.h"
#include "core/engine/stop_rules.h"
#include "core/segments/stack.h"

namespace sheaf {

/// Speculative decoding: tokens that are likely to go on with an answer are computed in the same step as its
/// last one. Each is picked as without, so answers stay the same; those that agree are kept.
struct Speculation {
  bool lookup = false;  ///< what followed, in the text an answer sees, the tokens that it ends with
  int32_t most = 8;     ///< tokens proposed for one answer in a step
  bool sparing = true;  ///< only what should save time; otherwise whatever the step has room for
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

/// Guesses the next tokens of answers, and knows how often it was right and what steps take.
class Speculator {
 public:
  Speculator(const Speculation& options, const StopRules& rules);

  /// What is likely to follow `answer`, where decoding stands at `node` of the allowed answers.
  Guess guess(const Stack& stack, const Slot& slot, const Tokens& answer, AllowedAnswers::Node node);
  /// Decides how much of the guesses is proposed. The step computes a token of each of `answers` answers, and
  /// of prompts a load of `prompt_load`; it has room for `room` tokens more.
  void share_out(std::span<const OpenAnswer> open, int32_t answers, double prompt_load, int32_t room) const;

  /// The next token of an answer turned out to be `right` or not.
  void count_guess(int32_t kind, bool right);
  void count_step(double load, double seconds) { cost_.count(load, seconds); }
  /// A complete answer, for others that go on alike.
  void remember(const Stack& stack, const Slot& slot, const Tokens& answer);

 private:
  static constexpr int32_t kLongest = 8;  ///< tokens that are compared
  /// Kinds: 0, the only token that is allowed; then by the number of equal tokens before it, in the text that
  /// the answer sees and in earlier answers.
  static constexpr int32_t kKinds = 1 + 2 * kLongest;
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

  Speculation options_;
  const StopRules& rules_;
  StepCost cost_;
  std::array<Rate, kKinds> rates_;
  std::deque<Tokens> answers_;  ///< the latest complete ones, each after the end of its prompt
  Tokens own_;                  ///< the prompt and the answer as it is guessed
};

}  // namespace sheaf
