// What an engine wants of a step's tokens, and what becomes of its picks.
#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "core/base/error.h"
#include "core/base/random_stream.h"
#include "core/engine/answer_options.h"
#include "core/engine/engine.h"

namespace sheaf {
namespace {

constexpr double kGuessWeight = 0.15;  // of the last guess among those of an answer

/// Whether the answer began as null does, as far as both go.
bool follows_null(const Tokens& null, const Tokens& answer) {
  const auto shared = static_cast<std::ptrdiff_t>(std::min(null.size(), answer.size()));
  return std::equal(null.begin(), null.begin() + shared, answer.begin());
}

/// The token that would go on with null; -1 where the answer is another one, or null is complete or not
/// allowed.
TokenId next_of_null(const Slot& asked, const Tokens& answer, std::span<const TokenId> allowed) {
  const Tokens& null = asked.watch->null;
  if (answer.size() >= null.size() || !follows_null(null, answer)) return -1;
  const TokenId next = null[answer.size()];
  return allowed.empty() || std::ranges::binary_search(allowed, next) ? next : -1;
}

/// Ends the run: an answer would mean nothing. What is committed stays.
[[noreturn]] void fail_unsound(const Tokens& answer, const std::string& device) {
  fail(
      "{}: the model's logits are not finite at token {} of an answer: weights are damaged, or numbers "
      "overflow in this precision; get the model again, or set a wider one (model.dtype: f32 on a CPU, bf16 "
      "on a GPU, without engine.kv_dtype: fp8); committed rows are kept",
      device, answer.size() + 1);
}

/// What a pick says of null and of other answers, before its token is added.
void watch_rivals(const Slot& asked, const Picked& picked, Answer& answer) {
  const Tokens& null = asked.watch->null;
  const size_t at = answer.tokens.size();
  if (!null.empty() && follows_null(null, answer.tokens)) {
    if (at >= null.size()) return;  // however null ends, it is null
    const bool stays = picked.token == null[at];
    const double of_null = static_cast<double>(stays ? picked.logprob : picked.watched);
    answer.null_logprob = answer.logprob + of_null;
    if (stays)
      answer.null_margin = std::max(answer.null_margin, static_cast<double>(picked.second) - of_null);
    else if (at + 1 == null.size())
      answer.null_margin = static_cast<double>(picked.logprob) - of_null;
    else  // whether the rest of null would follow is not known
      answer.null_margin = std::numeric_limits<double>::infinity();
  }
  answer.alternative = std::max(answer.alternative, answer.logprob + static_cast<double>(picked.second));
}

}  // namespace

/// The pick of the token after `answer`, which ends in `row`.
void Engine::add_pick(Step& step, const Slot& asked, const Tokens& answer, AllowedAnswers::Node node,
                      int32_t row, float contrast) const {
  const Decoding* own = asked.decoding.get();
  Pick pick{row, own ? own->temperature : options_.temperature, own ? own->top_k : options_.top_k,
            own ? own->top_p : options_.top_p};
  pick.uniform = uniform(own ? own->seed : options_.seed, asked.stream, answer.size());
  if (asked.allowed) {
    const auto allowed = asked.allowed->allowed(node);
    pick.first_allowed = static_cast<int32_t>(step.batch.allowed.size());
    pick.allowed_count = static_cast<int32_t>(allowed.size());
    step.batch.allowed.insert(step.batch.allowed.end(), allowed.begin(), allowed.end());
  }
  // One way on has no rivals.
  if (asked.watch && pick.allowed_count != 1) {
    pick.rivals = true;
    pick.watch = next_of_null(asked, answer,
                              std::span(step.batch.allowed).last(static_cast<size_t>(pick.allowed_count)));
    pick.bias = asked.watch->bias;
  }
  pick.chains = asked.prompts() - 1;
  pick.contrast = contrast;
  pick.aggregate = asked.aggregate;
  step.batch.picks.push_back(pick);
}

void Engine::want(Step& step, Flight& flight, int32_t slot) {
  const Slot& asked = flight.stack.slots[static_cast<size_t>(slot)];
  SlotState& state = flight.slots[static_cast<size_t>(slot)];
  Tokens& answer = state.answer.tokens;
  const size_t known = answer.size();
  AllowedAnswers::Node node = state.node;
  int32_t row = step.batch.rows() - asked.prompts() - state.guess.proposed;
  add_pick(step, asked, answer, node, row, state.contrast);
  for (const float prior : asked.chain_priors)
    step.batch.picks.push_back({.row = step.batch.picks.back().row + 1, .prior = prior});
  for (int32_t i = 0; i < state.guess.proposed; ++i) {
    answer.push_back(state.guess.tokens[static_cast<size_t>(i)]);
    if (asked.allowed) node = asked.allowed->advance(node, answer.back());
    add_pick(step, asked, answer, node, ++row, state.contrast);
  }
  answer.resize(known);
  step.wanted.push_back({&flight, slot});
  state.wanted = true;
}

/// Whether what was guessed to go on with an answer is what was picked, or is assumed to be.
bool Engine::is_right(TokenId guessed, TokenId picked, const Slot& asked, const Tokens& answer) const {
  const double assumed = options_.speculation.assumed_right;
  if (assumed == 0) return guessed == picked;
  return static_cast<double>(uniform(options_.seed, asked.stream, answer.size())) < assumed;
}

/// Takes the first of the picks, and the next as long as it follows a token that was rightly proposed.
/// Returns how many picks are the slot's.
size_t Engine::take(Wanted wanted, std::span<const Picked> picked) {
  Flight& flight = *wanted.flight;
  SlotState& state = flight.slots[static_cast<size_t>(wanted.slot)];
  const Guess guess = std::exchange(state.guess, {});
  const auto proposed = static_cast<size_t>(guess.proposed);
  state.wanted = false;
  if (state.closed) {
    finish_answer(flight, wanted.slot);
    return 1 + proposed;
  }
  const Slot& asked = flight.stack.slots[static_cast<size_t>(wanted.slot)];
  // What was proposed wrongly is computed over: the resident ends where the answer does.
  int32_t& keys = flight.residents[static_cast<size_t>(asked.answer)]->keys;
  keys -= guess.proposed;
  for (size_t i = 0; i <= proposed; ++i) {
    if (i > 0) {
      ++keys;
      ++stats_.accepted_tokens;
      speculator_->count_accepted();
      state.waiting = false;
      waiting_prompts_ -= asked.prompts();
    }
    const bool guessed = i < guess.tokens.size();
    const bool right = guessed && is_right(guess.tokens[i], picked[i].token, asked, state.answer.tokens);
    Picked next = picked[i];
    if (right) next.token = guess.tokens[i];
    take_token(wanted, next);
    state.guessable += kGuessWeight * ((right ? 1 : 0) - state.guessable);
    if (guessed) speculator_->count_guess(guess.kinds[i], right);
    if (state.closed || !right) break;
  }
  if (state.closed && speculator_) speculator_->remember(flight.stack, asked, state.answer.tokens);
  close_rivals(flight, wanted.slot);
  return 1 + proposed;
}

void Engine::take_token(Wanted wanted, Picked picked) {
  Flight& flight = *wanted.flight;
  const Slot& asked = flight.stack.slots[static_cast<size_t>(wanted.slot)];
  SlotState& state = flight.slots[static_cast<size_t>(wanted.slot)];
  Answer& answer = state.answer;
  // Every token of every backend and method passes here. The pick of a token that was proposed wrongly does
  // not, and need not: nobody reads it.
  if (std::isnan(picked.logprob)) fail_unsound(answer.tokens, backend_.describe());
  state.contrast = picked.contrast;
  if (asked.watch) watch_rivals(asked, picked, answer);
  answer.logprob += static_cast<double>(picked.logprob);
  ++stats_.answer_tokens;
  stats_.first_tokens += flight.stack.next != nullptr;
  if (!asked.allowed && rules_.ends_text(picked.token))
    return close_slot(flight, wanted.slot, Ending::end_of_text);
  answer.tokens.push_back(picked.token);
  if (asked.allowed) {
    state.node = asked.allowed->advance(state.node, picked.token);
    if (state.node < 0) return close_slot(flight, wanted.slot, Ending::chosen);
  } else if (rules_.ends_answer(asked.stop, answer.tokens) ||
             (asked.decoding && rules_.ends_with_stop(asked.decoding->stops, answer.tokens))) {
    return close_slot(flight, wanted.slot, Ending::delimiter);
  }
  const auto tokens = static_cast<int32_t>(answer.tokens.size());
  const bool assumed = !asked.allowed && !flight.stack.next && tokens == options_.assumed_tokens;
  if (tokens == asked.max_tokens || assumed) return close_slot(flight, wanted.slot, Ending::length);
  state.waiting = true;
  waiting_prompts_ += asked.prompts();
}

/// Of the options of one question, those that are less likely by now than a complete one cannot win any more.
/// A null that is watched is completed all the same: its log-probability is wanted.
void Engine::close_rivals(Flight& flight, int32_t slot) {
  const std::vector<Slot>& slots = flight.stack.slots;
  const int32_t first = slot - slots[static_cast<size_t>(slot)].option;
  const auto end = static_cast<int32_t>(options_end(slots, static_cast<size_t>(first)));
  if (end == first + 1) return;
  double best = -std::numeric_limits<double>::infinity();
  for (int32_t i = first; i < end; ++i) {
    const SlotState& state = flight.slots[static_cast<size_t>(i)];
    if (state.closed && state.answer.ending == Ending::chosen)
      best = std::max(best, option_score(slots[static_cast<size_t>(i)], state.answer));
  }
  for (int32_t i = first; i < end; ++i) {
    const SlotState& state = flight.slots[static_cast<size_t>(i)];
    const Slot& asked = slots[static_cast<size_t>(i)];
    if (!state.closed && !is_null_option(asked) && option_score(asked, state.answer) < best)
      close_slot(flight, i, Ending::length);
  }
}

void Engine::finish_answer(Flight& flight, int32_t slot) {
  const Slot& asked = flight.stack.slots[static_cast<size_t>(slot)];
  for (int32_t i = 0; i < asked.prompts(); ++i) --flight.open_answers[static_cast<size_t>(asked.answer + i)];
  --flight.open_slots;
  open_prompts_ -= asked.prompts();
}

void Engine::close_slot(Flight& flight, int32_t slot, Ending ending) {
  SlotState& state = flight.slots[static_cast<size_t>(slot)];
  const Slot& asked = flight.stack.slots[static_cast<size_t>(slot)];
  state.answer.ending = ending;
  state.closed = true;
  if (state.waiting) waiting_prompts_ -= asked.prompts();
  state.waiting = false;
  // A step under way still reads what a rival wrote.
  if (!state.wanted) finish_answer(flight, slot);
  (flight.stack.next ? stats_.first_answers : stats_.answers) += asked.option == 0;
  const int32_t grown =
      flight.residents[static_cast<size_t>(asked.answer)]->keys -
      static_cast<int32_t>(flight.stack.segments[static_cast<size_t>(asked.answer)].tokens.size());
  stats_.alone_tokens += asked.alone_tokens + asked.prompts() * grown;
}

void Engine::finish_segments(Flight& flight) {
  for (size_t i = 0; i < flight.next_segment; ++i) {
    if (flight.finished[i] || flight.open_answers[i] > 0) continue;
    flight.finished[i] = true;
    residents_.finish(flight.stack.segments[i], flight.residents[i], flight.residents);
  }
}

}  // namespace sheaf
