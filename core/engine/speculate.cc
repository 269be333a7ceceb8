#include "core/engine/speculate.h"

#include <algorithm>
#include <functional>
#include <map>
#include <ranges>
#include <utility>

#include "core/base/random_stream.h"

namespace sheaf {

constexpr size_t kRemembered = 8;     // answers
constexpr size_t kLongestKept = 512;  // tokens of one
constexpr double kForget = 256;       // guesses of a kind after which older ones count half
constexpr double kFewestTokens = 4;   // of an answer that is worth remembering
constexpr double kLeastChance = 0.05;
constexpr double kGuessWeight = 0.15;  // of the last guess among those of an answer
constexpr double kLeastGain = 1.05;    // times the tokens a second without proposals

Speculator::Speculator(const Speculation& options, const StopRules& rules, EngineStats& stats,
                       double draft_cost)
    : options_(options), rules_(rules), stats_(stats), pay_(draft_cost) {
  stats.has_draft = options.draft != nullptr;
  // Until it is known: the longer the match, the better.
  for (int32_t kind = 1; kind < kFirstDrafted; ++kind) {
    const double length = (kind - 1) % kLongest + 1;
    rates_[kind] = {8 * length * length / (length * length + 8), 8};
  }
  rates_[0] = {1, 1};
  for (int32_t i = 0; i < kDrafted; ++i) rates_[kFirstDrafted + i] = {8 * (i + 0.5) / kDrafted, 8};
  if (options.assumed_right > 0) rates_.fill({options.assumed_right * kForget, kForget});
}

double Speculator::propose(std::list<Flight>& flights, bool prompts_wait, const PlannedStep& step) {
  const bool by_draft = asks_draft();
  std::vector<DraftedAnswer> drafted;
  std::vector<OpenAnswer> open;
  int32_t group = 0;
  for (Flight& flight : flights) {
    if (prompts_wait) ++group;
    const bool known = flight.drafted != nullptr;
    const bool followed = by_draft && flight.guessed && (known || follow(flight, step.answers));
    for (OpenSlot& slot : flight.slots) {
      if (slot.closed) continue;
      open.push_back({nullptr, slot.guessable, group});
      if (!slot.waiting || !flight.guessed || slot.search || flight.options_of(slot).size() > 1) continue;
      slot.guess = {};
      const Tokens& answer = slot.answer.tokens;
      if (options_.lookup)
        slot.guess = guess(flight.stack, *slot.asked, answer, slot.node);
      else if (followed && !slot.asked->allowed && std::ranges::max(answer) < options_.draft->config().vocab)
        drafted.push_back({{flight.drafted.get(), static_cast<int32_t>(&slot - flight.slots.data()), answer},
                           slot.asked,
                           &slot.guess,
                           known});
      open.back().guess = &slot.guess;
    }
  }
  const double seconds = drafted.empty() ? 0 : draft(drafted, step);
  share_out(open, step);
  return seconds;
}

bool Speculator::verify(OpenSlot& slot, const Guess& guess, size_t at, Picked& picked) {
  if (at > 0) {
    ++stats_.accepted_tokens;
    gained_ += token_gain_;
  }
  bool right = false;
  if (at < guess.tokens.size()) {
    const double assumed = options_.assumed_right;
    right = assumed == 0
                ? guess.tokens[at] == picked.token
                : static_cast<double>(uniform(options_.seed, slot.asked->stream, slot.answer.tokens.size())) <
                      assumed;
    if (right) picked.token = guess.tokens[at];
    count_guess(guess.kinds[at], right);
  }
  slot.guessable += kGuessWeight * ((right ? 1 : 0) - slot.guessable);
  return right;
}

double Speculator::chance(int32_t kind) const {
  const Rate& rate = rates_[kind];
  return rate.right / rate.all;
}

void Speculator::count_guess(int32_t kind, bool right) {
  Rate& rate = rates_[kind];
  rate.right += right;
  rate.all += 1;
  if (rate.all > kForget) rate = {rate.right / 2, rate.all / 2};
  if (kind >= kFirstDrafted) pay_.count_token(right);
}

void Speculator::remember(const Stack& stack, const Slot& slot, const Tokens& answer) {
  pay_.count_answer(std::ssize(answer));
  if (slot.allowed || static_cast<double>(answer.size()) < kFewestTokens) return;
  const Tokens& prompt = stack.segments[slot.prompt].tokens;
  Tokens kept(prompt.end() - std::min<std::ptrdiff_t>(kLongest, std::ssize(prompt)), prompt.end());
  kept.insert(kept.end(), answer.begin(),
              answer.begin() + static_cast<std::ptrdiff_t>(std::min(answer.size(), kLongestKept)));
  answers_.push_back(std::move(kept));
  if (answers_.size() > kRemembered) answers_.pop_front();
}

/// Finds where `text` has the most tokens of the end of `tail`, with one after them; the last such place.
void Speculator::look(std::span<const TokenId> text, std::span<const TokenId> tail, bool earlier,
                      Match& best) {
  if (tail.empty() || text.size() < 2) return;
  for (size_t at = text.size() - 1; at-- > 0;) {
    if (text[at] != tail.back()) continue;
    const size_t most = std::min({static_cast<size_t>(kLongest), at + 1, tail.size()});
    size_t length = 1;
    while (length < most && text[at - length] == tail[tail.size() - 1 - length]) ++length;
    if (static_cast<int32_t>(length) <= best.length) continue;
    best = {text, at + 1, static_cast<int32_t>(length), earlier};
    if (length == kLongest) return;
  }
}

Speculator::Match Speculator::find(const Stack& stack, const Slot& slot) const {
  Match best;
  look(own_, own_, false, best);
  const std::vector<Sight>& sees = stack.segments[slot.answer].sees;
  for (const Sight& sight : std::views::reverse(sees))
    if (sight.segment != slot.prompt) look(stack.segments[sight.segment].tokens, own_, false, best);
  for (const auto& answer : std::views::reverse(answers_)) look(answer, own_, true, best);
  return best;
}

Guess Speculator::guess(const Stack& stack, const Slot& slot, const Tokens& answer,
                        AllowedAnswers::Node node) {
  Guess guess;
  own_ = stack.segments[slot.prompt].tokens;
  const size_t prompt = own_.size();
  own_.insert(own_.end(), answer.begin(), answer.end());
  // The last token of an answer is not computed.
  const int32_t most = std::min(options_.most, slot.max_tokens - 1 - static_cast<int32_t>(answer.size()));
  own_.reserve(own_.size() + static_cast<size_t>(std::max(0, most)));  // a match may point into it
  Match match;
  while (static_cast<int32_t>(guess.tokens.size()) < most) {
    const std::span<const TokenId> allowed =
        slot.allowed ? slot.allowed->allowed(node) : std::span<const TokenId>();
    TokenId next = -1;
    int32_t kind = 0;
    if (allowed.size() == 1) {
      next = allowed[0];
      if (match.length == 0 || match.text[match.next] != next) match = {};
    } else {
      if (match.length == 0) match = find(stack, slot);
      if (match.length == 0) break;
      next = match.text[match.next];
      kind = std::min(match.length, kLongest) + (match.earlier ? kLongest : 0);
      if (!allowed.empty() && !std::ranges::binary_search(allowed, next)) break;
    }
    own_.push_back(next);
    if (slot.allowed) node = slot.allowed->advance(node, next);
    if (slot.allowed ? node < 0 : ends(slot, std::span(own_).subspan(prompt))) break;
    guess.tokens.push_back(next);
    guess.kinds.push_back(kind);
    if (match.length > 0) {
      ++match.length;
      if (++match.next == match.text.size()) match = {};
    }
  }
  return guess;
}

/// What a token fewer to decode saves, beside what a token costs on average in such a step. Most of a small
/// step's time is not that of its tokens: it is saved only where an answer that others wait for ends sooner,
/// and answers that are easily guessed are seldom the last.
std::vector<double> Speculator::worth_of_tokens(std::span<const OpenAnswer> open, int32_t answers) const {
  const double all = cost_.seconds(answers), further = std::max(4, answers);
  const double own = std::max(0.0, cost_.seconds(answers + further) - all) / further;  // of a token
  const double step = std::max(0.0, all - own * answers);
  const auto last = [](const OpenAnswer& answer) {
    const double pace = 1 / (1 - 0.9 * answer.guessable);
    return 1 / (pace * pace);
  };
  std::map<int32_t, double> groups;
  for (const OpenAnswer& answer : open) groups[answer.group] += last(answer);
  std::vector<double> worth;
  for (const OpenAnswer& answer : open) {
    const double share = last(answer) / groups[answer.group] / static_cast<double>(groups.size());
    worth.push_back((own + step * share) * answers / all);
  }
  return worth;
}

/// By so many proposals more than `proposed`.
double Speculator::added_seconds(const PlannedStep& step, double proposed, double more) const {
  const double load = step.answers + step.prompt_load + proposed;
  return std::max(0.0, cost_.seconds(load + more) - cost_.seconds(load));
}

void Speculator::share_out(std::span<const OpenAnswer> open, const PlannedStep& step) {
  if (options_.sparing && !cost_.known()) return;
  const auto& [answers, prompt_load, room] = step;
  const std::vector<double> worth =
      options_.sparing ? worth_of_tokens(open, answers) : std::vector<double>(open.size(), 1);
  struct Candidate {
    double gain;  ///< the chance that it and all before it are right × what it is worth
    Guess* guess;
  };
  std::vector<Candidate> candidates;
  for (size_t i = 0; i < open.size(); ++i) {
    if (!open[i].guess) continue;
    double all = 1;
    for (const int32_t kind : open[i].guess->kinds) {
      all *= chance(kind);
      if (options_.sparing && all < kLeastChance) break;
      candidates.push_back({all * worth[i], open[i].guess});
    }
  }
  std::ranges::stable_sort(candidates, std::greater(), &Candidate::gain);
  if (std::ssize(candidates) > room) candidates.resize(static_cast<size_t>(std::max(0, room)));
  size_t best = candidates.size();
  if (options_.sparing) {
    best = 0;
    // The prompts' tokens are computed in any case: what counts is what the proposals add to the step.
    const double alone = cost_.seconds(answers);
    double tokens = answers, most = kLeastGain * answers / alone;
    for (size_t i = 0; i < candidates.size(); ++i) {
      tokens += candidates[i].gain;
      const double rate = tokens / (alone + added_seconds(step, 0, static_cast<double>(i + 1)));
      if (rate <= most) continue;
      most = rate;
      best = i + 1;
    }
  }
  for (size_t i = 0; i < best; ++i) ++candidates[i].guess->proposed;
  if (plain_ > 0) spent_ += added_seconds(step, 0, static_cast<double>(best));
}

}  // namespace sheaf
