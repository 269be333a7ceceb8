// What an engine wants of a step's tokens, and what becomes of its picks.
#include <algorithm>
#include <cmath>
#include <limits>

#include "core/base/error.h"
#include "core/base/random_stream.h"
#include "core/engine/engine.h"

namespace sheaf {
namespace {

/// Whether the answer began as null does, as far as both go.
bool follows_null(const Tokens& null, const Tokens& answer) {
  const auto shared = static_cast<std::ptrdiff_t>(std::min(null.size(), answer.size()));
  return std::equal(null.begin(), null.begin() + shared, answer.begin());
}

/// The next token of null; -1 where the answer is another one, or null is complete or not
/// allowed.
TokenId next_of_null(const Slot& asked, const Tokens& answer, std::span<const TokenId> allowed) {
  const Tokens& null = asked.watch->null;
  if (answer.size() >= null.size() || !follows_null(null, answer)) return -1;
  const TokenId next = null[answer.size()];
  return allowed.empty() || std::ranges::binary_search(allowed, next) ? next : -1;
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

/// The pick of the token after `answer`, which ends in `row`.
void add_pick(StepBatch& batch, const EngineOptions& options, const Slot& asked, const Tokens& answer,
              AllowedAnswers::Node node, int32_t row, float contrast) {
  const Decoding* own = asked.decoding.get();
  Pick pick{row, own ? own->temperature : options.temperature, own ? own->top_k : options.top_k,
            own ? own->top_p : options.top_p};
  pick.uniform = uniform(own ? own->seed : options.seed, asked.stream, answer.size());
  if (asked.allowed) {
    const auto allowed = asked.allowed->allowed(node);
    pick.first_allowed = static_cast<int32_t>(batch.allowed.size());
    pick.allowed_count = static_cast<int32_t>(allowed.size());
    batch.allowed.insert(batch.allowed.end(), allowed.begin(), allowed.end());
  }
  // One way on has no rivals.
  if (asked.watch && pick.allowed_count != 1) {
    pick.rivals = true;
    pick.watch =
        next_of_null(asked, answer, std::span(batch.allowed).last(static_cast<size_t>(pick.allowed_count)));
    pick.bias = asked.watch->bias;
  }
  pick.chains = asked.prompts() - 1;
  pick.contrast = contrast;
  pick.aggregate = asked.aggregate;
  batch.picks.push_back(pick);
}

}  // namespace

void Engine::want(Step& step, OpenSlot& slot) {
  const Slot& asked = *slot.asked;
  Tokens& answer = slot.answer.tokens;
  const size_t known = answer.size();
  AllowedAnswers::Node node = slot.node;
  int32_t row = step.batch.rows() - asked.prompts() - slot.guess.proposed;
  add_pick(step.batch, options_, asked, answer, node, row, slot.contrast);
  if (slot.search) {
    Pick& pick = step.batch.picks.back();
    pick.listed =
        slot.search->room(std::span(step.batch.allowed).last(static_cast<size_t>(pick.allowed_count)));
  }
  for (const float prior : asked.chain_priors)
    step.batch.picks.push_back({.row = step.batch.picks.back().row + 1, .prior = prior});
  for (int32_t i = 0; i < slot.guess.proposed; ++i) {
    answer.push_back(slot.guess.tokens[i]);
    if (asked.allowed) node = asked.allowed->advance(node, answer.back());
    add_pick(step.batch, options_, asked, answer, node, ++row, slot.contrast);
  }
  answer.resize(known);
  step.wanted.push_back(&slot);
  slot.wanted = true;
}

/// Takes the first of the picks, and the next as long as it follows a token that was rightly proposed.
/// Returns how many picks are the slot's.
size_t Engine::take(OpenSlot& slot, std::span<const Picked> picked) {
  const Slot& asked = *slot.asked;
  if (slot.search) {
    slot.wanted = false;
    take_listed(slot, picked.front());
    return 1;
  }
  const Guess guess = std::exchange(slot.guess, {});
  const size_t picks = 1 + static_cast<size_t>(guess.proposed);
  slot.wanted = false;
  if (slot.closed) {
    finish_answer(slot);
    return picks;
  }
  // What was proposed wrongly is computed over: the resident ends where the answer does.
  int32_t& keys = slot.flight->residents[asked.answer]->keys;
  keys -= guess.proposed;
  for (size_t i = 0; i < picks; ++i) {
    if (i > 0) {
      ++keys;
      slot.waiting = false;
      waiting_prompts_ -= asked.prompts();
    }
    Picked next = picked[i];
    const bool right = speculator_ && speculator_->verify(slot, guess, i, next);
    take_token(slot, next);
    if (slot.closed || !right) break;
  }
  if (slot.closed && speculator_) speculator_->remember(slot.flight->stack, asked, slot.answer.tokens);
  close_rivals(slot);
  return picks;
}

/// Every token of every backend and method passes here. The pick of a token that was proposed wrongly does
/// not, and need not: nobody reads it.
void Engine::check_finite(const OpenSlot& slot, const Picked& picked) const {
  if (std::isnan(picked.logprob))  // an answer would mean nothing
    fail(
        "{}: the model's logits are not finite at token {} of an answer: weights are damaged, or numbers "
        "overflow in this precision; get the model again, or set a wider one (model.dtype: f32 on a CPU, "
        "bf16 "
        "on a GPU, without engine.kv_dtype: fp8); committed rows are kept",
        backend_.describe(), slot.answer.tokens.size() + 1);
}

/// The search says which tokens to compute next: those behind what its new path shares with the one before.
void Engine::take_listed(OpenSlot& slot, const Picked& picked) {
  check_finite(slot, picked);
  const Slot& asked = *slot.asked;
  Flight& flight = *slot.flight;
  LikeliestSearch& search = *slot.search;
  if (search.take()) {
    slot.answer.tokens = search.path();
    slot.node = search.node();
    slot.unfed = static_cast<int32_t>(search.path().size() - search.shared());
    flight.residents[asked.answer]->keys =
        static_cast<int32_t>(flight.stack.segments[asked.answer].tokens.size() + search.shared());
    slot.waiting = true;
    waiting_prompts_ += asked.prompts();
    return;
  }
  slot.answer = search.answer();
  stats_.answer_tokens += std::ssize(slot.answer.tokens);
  stats_.first_tokens += flight.stack.feeds_next() ? std::ssize(slot.answer.tokens) : 0;
  ++stats_.searched_answers;
  stats_.searched_tokens += search.computed();
  stats_.cut_searches += search.cut();
  close_slot(slot, slot.answer.ending);
}

void Engine::take_token(OpenSlot& slot, const Picked& picked) {
  const Slot& asked = *slot.asked;
  const Stack& stack = slot.flight->stack;
  Answer& answer = slot.answer;
  check_finite(slot, picked);
  slot.contrast = picked.contrast;
  if (asked.watch) watch_rivals(asked, picked, answer);
  answer.logprob += static_cast<double>(picked.logprob);
  ++stats_.answer_tokens;
  stats_.first_tokens += stack.feeds_next();
  if (!asked.allowed && rules_.ends_text(picked.token)) return close_slot(slot, Ending::end_of_text);
  answer.tokens.push_back(picked.token);
  if (asked.prompts() > 1) answer.voices.push_back(picked.voice);
  if (asked.allowed) {
    slot.node = asked.allowed->advance(slot.node, picked.token);
    if (slot.node < 0) return close_slot(slot, Ending::chosen);
  } else if (rules_.ends_answer(asked, answer.tokens)) {
    return close_slot(slot, Ending::delimiter);
  }
  const auto tokens = static_cast<int32_t>(answer.tokens.size());
  const bool assumed = !asked.allowed && !stack.feeds_next() && tokens == options_.assumed_tokens;
  if (tokens == asked.max_tokens || assumed) return close_slot(slot, Ending::length);
  slot.waiting = true;
  waiting_prompts_ += asked.prompts();
}

/// Of the options of one question, those that are less likely by now than a complete one cannot win any more.
/// A null that is watched is completed all the same: its log-probability is wanted.
void Engine::close_rivals(const OpenSlot& slot) {
  const std::span<OpenSlot> options = slot.flight->options_of(slot);
  if (options.size() == 1) return;
  double best = -std::numeric_limits<double>::infinity();
  for (const OpenSlot& each : options)
    if (each.closed && each.answer.ending == Ending::chosen)
      best = std::max(best, option_score(*each.asked, each.answer));
  for (OpenSlot& each : options)
    if (!each.closed && !is_null_option(*each.asked) && option_score(*each.asked, each.answer) < best)
      close_slot(each, Ending::length);
}

void Engine::close_slot(OpenSlot& slot, Ending ending) {
  const Slot& asked = *slot.asked;
  const Flight& flight = *slot.flight;
  slot.answer.ending = ending;
  slot.closed = true;
  if (slot.waiting) waiting_prompts_ -= asked.prompts();
  slot.waiting = false;
  // A step under way still reads what a rival wrote.
  if (!slot.wanted) finish_answer(slot);
  (flight.stack.feeds_next() ? stats_.first_answers : stats_.answers) += asked.option == 0;
  stats_.entry_answers += flight.stack.earlier && asked.option == 0;
  const int32_t grown = slot.search
                            ? static_cast<int32_t>(slot.search->computed())
                            : flight.residents[asked.answer]->keys -
                                  static_cast<int32_t>(flight.stack.segments[asked.answer].tokens.size());
  stats_.alone_tokens += asked.alone_tokens + asked.prompts() * grown;
}

void Engine::finish_answer(OpenSlot& slot) {
  const Slot& asked = *slot.asked;
  for (int32_t i = 0; i < asked.prompts(); ++i) --slot.flight->open_answers[asked.answer + i];
  --slot.flight->open_slots;
  open_prompts_ -= asked.prompts();
}

}  // namespace sheaf
