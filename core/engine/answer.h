#pragma once
#include <cstddef>
#include <limits>

#include "core/segments/stack.h"

namespace sheaf {

/// Why an answer ended.
enum class Ending : uint8_t {
  end_of_text,  ///< the model ended its turn
  delimiter,    ///< the newline, literal or brace that completes it
  chosen,       ///< an allowed answer was complete
  length,       ///< max_tokens reached: the answer is cut
  searched,     ///< an allowed answer was complete, and the search for a likelier one ended at its limit
};
const char* ending_name(Ending ending);

struct InnerAnswer;

struct Answer {
  Tokens tokens;  ///< as decoded, a delimiter included, an end-of-text token not
  Ending ending = Ending::length;
  double logprob = 0;                ///< of all decoded tokens, the ending one included
  std::vector<int32_t> voices = {};  ///< with chains: of each token, the chain that spoke it, from 1

  // Where the slot has a watch (docs/confidence.md defines them); the bias of null counts in none of them.
  double null_logprob =
      -std::numeric_limits<double>::infinity();                   ///< of null's tokens, as far as it is known
  double alternative = -std::numeric_limits<double>::infinity();  ///< of the likeliest way that was not taken
  /// The bias above which the answer is null, below which it is a value; infinite where that is not known.
  double null_margin = -std::numeric_limits<double>::infinity();

  std::vector<InnerAnswer> inner = {};  ///< about the entries that it lists, by entry and then by field
};

/// An answer of a later round.
struct InnerAnswer {
  int32_t entry = 0;  ///< of the answer around it, from 0
  int32_t field = 0;  ///< the question about the entry, from 0
  Answer answer;
};

/// Calls visit(answer) with the answers inside of one, at any depth.
template <class Visit>
void visit_inner(const Answer& answer, const Visit& visit) {
  for (const InnerAnswer& each : answer.inner) {
    visit(each.answer);
    visit_inner(each.answer, visit);
  }
}

/// The answers that one holds, itself counted.
inline int64_t count_answers(const Answer& answer) {
  int64_t count = 1;
  visit_inner(answer, [&](const Answer&) { ++count; });
  return count;
}

/// A round whose answers are kept, and these.
struct EarlierRound {
  Stack stack;  ///< without segments
  std::vector<Answer> answers;
};

/// Makes a last round and its answers the first one, with the answers of all later rounds inside of its own.
void join_rounds(Stack& stack, std::vector<Answer>& answers);

// Several answers to one question, of which the likeliest is taken: slots that stand side by side.

/// The end of the options of the question whose first one is `first`.
size_t options_end(const std::vector<Slot>& slots, size_t first);

/// Whether the slot's only answer is the null that it watches.
bool is_null_option(const Slot& slot);

/// What options are compared by: the log-probability, that of null with its bias.
double option_score(const Slot& slot, const Answer& answer);

/// The likeliest of the options, the first on a tie, with what the others say of null and the best
/// alternative. An option that was dropped counts with the log-probability of its tokens so far, which is an
/// upper bound.
Answer take_likeliest(std::span<const Slot> slots, std::span<Answer> answers);

}  // namespace sheaf
