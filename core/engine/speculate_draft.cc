// What a speculator makes of a draft: whom it follows, how far it is asked, and whether that pays.
#include <algorithm>
#include <cmath>

#include "core/base/stopwatch.h"
#include "core/engine/speculate.h"

namespace sheaf {

constexpr double kLeastDrafted = 0.2;  // chance of a guess that the draft builds on
constexpr int32_t kPromptStep = 64;    // tokens of a step that a prompt's time is taken from

bool Speculator::asks_draft() {
  if (!options_.draft || stats_.draft_failed || stats_.draft_unsound) return false;
  if (plain_ > 0) pay_.count_step(plain_, spent_, gained_);
  plain_ = spent_ = gained_ = 0;
  return !options_.sparing || (cost_.known() && pay_.due());
}

/// Lets the draft follow a prompt, if it can and should.
bool Speculator::follow(Flight& flight, int32_t answers) {
  if (flight.undraftable || (options_.sparing && !worth_following(flight, answers))) return false;
  flight.drafted = options_.draft->follow(flight.stack);
  flight.undraftable = !flight.drafted;
  stats_.undrafted_prompts += flight.undraftable;
  return !flight.undraftable;
}

/// Whether what the draft could save on the flight's answers, in steps of `answers`, is worth computing the
/// tokens before them.
bool Speculator::worth_following(const Flight& flight, int32_t answers) const {
  int64_t missing = flight.stack.prompt_tokens();
  double left = 0;  // tokens that the answers may still get
  for (const OpenSlot& slot : flight.slots) {
    if (slot.closed || slot.asked->allowed) continue;
    const int64_t decoded = std::ssize(slot.answer.tokens);
    missing += decoded;
    left += pay_.tokens_left(decoded, slot.asked->max_tokens);
  }
  const double plain = cost_.seconds(answers);
  const double round = pay_.round_seconds(answers, plain) + added_seconds({.answers = answers}, 0, answers);
  const double share = 1 - (1 + round / plain) / (1 + pay_.right());
  const double compute = cost_.seconds(kPromptStep) / kPromptStep * static_cast<double>(missing);
  return pay_.worth_following(left * plain / answers, share, missing, compute);
}

/// Whether the draft could propose a token more.
bool Speculator::goes_on(const DraftedAnswer& answer) const {
  return std::ssize(answer.guess->tokens) < options_.most &&
         std::ssize(answer.line.tokens) < answer.slot->max_tokens - 1 &&
         (!options_.sparing || answer.chance >= kLeastDrafted);
}

/// Whether a round for these answers should save more than it takes.
bool Speculator::pays(std::span<DraftedAnswer* const> active, const PlannedStep& step,
                      double proposed) const {
  double right = 0;
  for (const DraftedAnswer* answer : active) right += answer->chance * pay_.right();
  const auto lines = static_cast<double>(active.size());
  return right * token_gain_ >
         pay_.round_seconds(lines, cost_.seconds(lines)) + added_seconds(step, proposed, lines);
}

/// Returns whether there can be more.
bool Speculator::add_drafted(DraftedAnswer& answer, const Picked& picked) const {
  if (std::isnan(picked.logprob) || picked.token >= rules_.vocab())
    return false;  // not sound, or a draft that has more tokens
  Tokens& tokens = answer.line.tokens;
  tokens.push_back(picked.token);
  if (ends(*answer.slot, tokens)) return false;
  const auto bucket = static_cast<int32_t>(std::exp(picked.logprob) * kDrafted);
  answer.guess->tokens.push_back(picked.token);
  answer.guess->kinds.push_back(kFirstDrafted + std::clamp(bucket, 0, kDrafted - 1));
  answer.chance *= chance(answer.guess->kinds.back());
  return goes_on(answer);
}

double Speculator::draft(std::span<DraftedAnswer> answers, const PlannedStep& step) {
  const int64_t before = options_.draft->tokens();
  double seconds = 0;
  try {
    const Stopwatch watch(seconds);
    ask_rounds(answers, step);
  } catch (const OutOfMemory&) {
    stats_.draft_failed = true;
  }
  stats_.draft_seconds += seconds;
  stats_.draft_tokens += options_.draft->tokens() - before;
  return seconds;
}

void Speculator::ask_rounds(std::span<DraftedAnswer> answers, const PlannedStep& step) {
  Draft& draft = *options_.draft;
  token_gain_ = cost_.seconds(step.answers) / step.answers;
  std::vector<DraftedAnswer*> active;
  std::vector<const Draft::Line*> lines;
  for (DraftedAnswer& answer : answers)
    if (goes_on(answer)) active.push_back(&answer);
  const auto list = [&] {
    lines.clear();
    for (const DraftedAnswer* answer : active) lines.push_back(&answer->line);
  };
  if (active.empty() || (options_.sparing && !pays(active, step, 0))) return;
  plain_ = cost_.seconds(step.answers);
  list();
  const int64_t before = draft.tokens();
  double seconds = 0;
  {
    const Stopwatch watch(seconds);
    draft.catch_up(lines);
  }
  pay_.count_prompts(draft.tokens() - before, seconds);
  // Prompts are weighed before they are followed.
  if (std::ranges::all_of(active, &DraftedAnswer::known)) spent_ += seconds;
  for (double proposed = 0; !active.empty() && proposed < step.room;
       proposed += static_cast<double>(active.size())) {
    if (options_.sparing && !pays(active, step, proposed)) break;
    double round = 0;
    std::span<const Picked> picked;
    {
      const Stopwatch watch(round);
      picked = draft.next(lines);
    }
    pay_.count_round(static_cast<double>(active.size()), round);
    spent_ += round;
    // What is right does not depend on a draft, so the run continues without it.
    stats_.draft_unsound |=
        std::ranges::any_of(picked, [](const Picked& each) { return std::isnan(each.logprob); });
    size_t kept = 0;
    for (size_t i = 0; i < active.size(); ++i)
      if (add_drafted(*active[i], picked[i])) active[kept++] = active[i];
    active.resize(kept);
    list();
  }
}

}  // namespace sheaf
