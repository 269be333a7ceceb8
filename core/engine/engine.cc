#include "core/engine/engine.h"

#include <algorithm>
#include <iterator>

#include "core/base/error.h"
#include "core/model/work.h"

namespace sheaf {
namespace {

constexpr int64_t kMeasuredSteps = 4;  // after which the time of a token is known
constexpr int32_t kFewestRows = 16;    // a step that small must fit

/// What a prompt's token costs beside one whose next token is picked.
double prompt_share(const ModelConfig& config) {
  const Work token{1, 0, 1};
  return layer_flops(token, config) / gemm_flops(token, config);
}

constexpr int32_t kFirstSteps = 8;  // whose tokens a pool holds that may grow

/// The pages to begin with.
int32_t first_pages(const Backend& backend, const EngineOptions& options) {
  const int64_t few = int64_t{kFirstSteps} * options.tokens_per_step / options.page_size + 1;
  const bool small = options.small_start && backend.grows_kv() && few < options.pages / 4;
  return small ? static_cast<int32_t>(few) : options.pages;
}

}  // namespace

EngineStats& EngineStats::operator+=(const EngineStats& other) {
  using S = EngineStats;
  const auto sum = [&](auto... members) { ((this->*members += other.*members), ...); };
  sum(&S::steps, &S::prefill_tokens, &S::decode_tokens, &S::read_tokens, &S::answers, &S::first_answers,
      &S::answer_tokens, &S::first_tokens, &S::entry_answers, &S::entry_tokens, &S::alone_tokens,
      &S::proposed_tokens, &S::accepted_tokens, &S::searched_tokens, &S::searched_answers, &S::cut_searches,
      &S::draft_tokens, &S::undrafted_prompts, &S::peak_pages, &S::split_steps, &S::step_seconds,
      &S::draft_seconds, &S::waited_seconds, &S::host_seconds, &S::idle_seconds);
  for (const auto flag : {&S::has_draft, &S::draft_failed, &S::draft_unsound})
    this->*flag = this->*flag || other.*flag;
  return *this;
}

Engine::Engine(Backend& backend, const StopRules& rules, const EngineOptions& options)
    : backend_(backend),
      rules_(rules),
      options_(options),
      pool_(make_pool(backend, first_pages(backend, options), options.page_size), options.page_size),
      // While it grows, the small one is still there.
      most_pages_(std::max(
          pool_.total(), first_pages(backend, options) < options.pages ? options.pages - pool_.total() : 0)),
      residents_(pool_, options.whole_pages || backend.wants_whole_pages()),
      stored_(options.store, backend, options.page_size),
      builder_(options.page_size),
      steps_(static_cast<size_t>(backend.steps_at_once())) {
  if (!options.speculation.any()) return;
  const Draft* draft = options.speculation.draft;
  options_.speculation.seed = options.seed;
  speculator_.emplace(options_.speculation, rules, stats_, draft ? draft->cost_beside(backend.config()) : 0);
}

bool Engine::fits(const Stack& stack) const {
  // Shared segments that happen to be resident now may be gone when it is admitted, so all of it is counted.
  int64_t pages = 0;
  const int32_t lead = residents_.whole_pages() ? options_.page_size - 1 : 0;
  for (int32_t keys : stack.most_keys()) pages += pool_.pages_for(lead + keys);
  return pages <= most_pages_;
}

bool Engine::run(const Source& next, const Sink& done) {
  drained_ = false;
  left_backend_ = std::chrono::steady_clock::now();
  try {
    while (true) {
      if (in_flight_ == steps_.size() || (in_flight_ > 0 && interrupted())) {
        finish_step(done);
        continue;
      }
      if (interrupted()) return false;
      const int64_t ready = admit(next);
      if (short_of_pages_) {
        while (in_flight_ > 0) finish_step(done);
        grow_pool();
        continue;
      }
      if (flights_.empty() && in_flight_ == 0) return !interrupted();
      // A thin step costs more than the wait for the picks that would fill it.
      if (in_flight_ > 0 && 2 * ready < options_.tokens_per_step)
        finish_step(done);
      else
        start_step(done);
    }
  } catch (...) {
    abandon_steps();
    throw;
  }
}

/// Whether a stack waits for room: a next round before what the source has.
bool Engine::read_next(const Source& next) {
  if (pending_) return true;
  if (!next_rounds_.empty()) {
    pending_ = std::move(next_rounds_.front());
    next_rounds_.pop_front();
  } else if (!drained_) {
    pending_ = next();
    drained_ = !pending_;
  }
  if (pending_) check_stack(*pending_);
  return pending_.has_value();
}

int64_t Engine::admit(const Source& next) {
  int64_t backlog = 0;  // prefill rows of flights already admitted
  for (const Flight& flight : flights_)
    for (size_t i = flight.next_segment;
         i < flight.stack.segments.size() && backlog < options_.tokens_per_step; ++i)
      if (!flight.residents[i]->fetch)
        backlog += static_cast<int64_t>(flight.stack.segments[i].tokens.size()) - flight.residents[i]->keys;

  while (backlog < options_.tokens_per_step && read_next(next)) {
    if (options_.prompts > 0 && flights_.size() >= static_cast<size_t>(options_.prompts)) break;
    int32_t prompts = 0;
    for (const Slot& slot : pending_->slots) prompts += slot.prompts();
    if (open_prompts_ > 0 && open_prompts_ + prompts > options_.tokens_per_step) break;
    const int32_t needed = residents_.pages_needed(*pending_);
    short_of_pages_ = pool_.total() < most_pages_ && needed > residents_.free_room();
    if (short_of_pages_) break;
    if (needed > residents_.room()) {
      if (flights_.empty())
        fail("a prompt needs {} pages of keys and values, but the pool has {}", needed, pool_.total());
      break;
    }
    const Flight& flight = flights_.emplace_back(std::move(*pending_), residents_);
    pending_.reset();
    open_prompts_ += prompts;
    backlog += flight.stack.prompt_tokens() - stored_.admitted(flight, token_seconds());
  }
  backlog_ = backlog;
  return backlog + waiting_prompts_;
}

void Engine::grow_pool() {
  short_of_pages_ = false;
  while (most_pages_ > pool_.total()) {
    try {
      call_backend([&] { backend_.grow_kv(most_pages_); });
      return pool_.grow(most_pages_);
    } catch (const OutOfMemory&) {
      most_pages_ = std::max(pool_.total(), most_pages_ - most_pages_ / 8);
    }
  }
}

void Engine::start_step(const Sink& done) {
  Step& step = steps_[(oldest_ + in_flight_) % steps_.size()];
  step.wanted.clear();
  step.complete.clear();
  builder_.begin(step.batch);
  if (speculator_) propose();
  add_decode_tokens(step);
  step.batch.decode_tokens = step.batch.rows();
  add_prefill_tokens(step);
  builder_.close();
  if (step.batch.rows() == 0) {  // all there was to do came from the store, or is to come
    retire(done);
    return in_flight_ > 0 ? finish_step(done) : wait_for_store();
  }
  step.picked.resize(step.batch.picks.size());
  step.started = std::chrono::steady_clock::now();
  try {
    call_backend([&] {
      backend_.start(step.batch, step.picked);
      if (options_.observer) options_.observer->start(step.batch);
    });
    ++in_flight_;
  } catch (const OutOfMemory&) {
    ++stats_.split_steps;
    while (in_flight_ > 0) finish_step(done);
    run_in_parts(step.batch, step.picked);
    apply(step, done);
  }
}

/// Guesses the next tokens of answers where the step has room for more than what is known.
void Engine::propose() {
  const int64_t room = std::min(options_.tokens_per_step, row_limit_) - waiting_prompts_ - backlog_;
  if (room <= 0 || waiting_prompts_ == 0) return;
  const double drafting =
      speculator_->propose(flights_, pending_.has_value(),
                           {waiting_prompts_, prompt_share(backend_.config()) * static_cast<double>(backlog_),
                            static_cast<int32_t>(room)});
  // The draft's time is not the loop's.
  left_backend_ += std::chrono::duration_cast<std::chrono::steady_clock::duration>(
      std::chrono::duration<double>(drafting));
}

void Engine::add_decode_tokens(Step& step) {
  for (Flight& flight : flights_) {
    for (OpenSlot& slot : flight.slots) {
      if (!slot.waiting) continue;
      const Slot& asked = *slot.asked;
      const int32_t prompts = asked.prompts(), proposed = slot.guess.proposed;
      const int32_t rows = prompts * slot.unfed + proposed;
      if (step.batch.rows() > 0 && step.batch.rows() > row_limit_ - rows) return;
      if (step.batch.rows() > 0 && slot.unfed > 1 && step.batch.rows() > options_.tokens_per_step - rows)
        return;
      fed_.assign(slot.answer.tokens.end() - slot.unfed, slot.answer.tokens.end());
      fed_.insert(fed_.end(), slot.guess.tokens.begin(), slot.guess.tokens.begin() + proposed);
      for (SegmentId segment = asked.answer; segment < asked.answer + prompts; ++segment)
        add_rows(flight, segment, flight.residents[segment]->keys, fed_);
      want(step, slot);
      slot.waiting = false;
      waiting_prompts_ -= prompts;
      stats_.decode_tokens += rows;
      stats_.entry_tokens += flight.stack.earlier ? rows : 0;
      stats_.proposed_tokens += proposed;
    }
  }
}

void Engine::add_prefill_tokens(Step& step) {
  for (Flight& flight : flights_) {
    for (; !flight.prefilled(); ++flight.next_segment) {
      const Segment& segment = flight.stack.segments[flight.next_segment];
      Resident* own = flight.residents[flight.next_segment];
      const auto total = static_cast<int32_t>(segment.tokens.size());
      if (own->fetch) {
        if (!own->fetch->ready()) break;
        residents_.grow(own, total);
        stats_.read_tokens += stored_.take(own);
      }
      const int32_t keys = own->keys;
      const auto& prompted = flight.prompted[flight.next_segment];
      const int32_t together = prompted.empty() ? 1 : prompted[0]->asked->prompts();
      if (together > 1) {
        if (step.batch.rows() > 0 && step.batch.rows() > options_.tokens_per_step - together) return;
        add_chains(step, *prompted[0]);
        flight.next_segment += static_cast<size_t>(together - 1);
      } else if (keys < total) {
        const int32_t rows = std::min(total - keys, options_.tokens_per_step - step.batch.rows());
        if (rows <= 0) return;
        add_rows(flight, static_cast<SegmentId>(flight.next_segment), keys,
                 std::span(segment.tokens).subspan(static_cast<size_t>(keys), static_cast<size_t>(rows)));
        stats_.prefill_tokens += rows;
        stats_.entry_tokens += flight.stack.earlier ? rows : 0;
        if (keys + rows < total) return;
        if (stored_.keeps(own)) {
          residents_.use(own);
          step.complete.emplace_back(segment.role, own);
        }
        for (OpenSlot* slot : prompted) want(step, *slot);
      }
    }
  }
}

/// The last tokens of all prompts of a slot with chains.
void Engine::add_chains(Step& step, OpenSlot& slot) {
  const Slot& asked = *slot.asked;
  for (SegmentId segment = asked.prompt; segment < asked.prompt + asked.prompts(); ++segment)
    add_rows(*slot.flight, segment, 0, slot.flight->stack.segments[segment].tokens);
  stats_.prefill_tokens += asked.prompts();
  want(step, slot);
}

void Engine::add_rows(Flight& flight, SegmentId id, int32_t first, std::span<const TokenId> tokens) {
  Resident* own = flight.residents[id];
  flight.last_step = stats_.steps + static_cast<int64_t>(in_flight_) + 1;
  residents_.grow(own, first + static_cast<int32_t>(tokens.size()));
  builder_.add(flight.stack.segments[id], own, flight.residents, first, tokens);
}

void Engine::run_in_parts(const StepBatch& batch, std::span<Picked> picked) {
  const int32_t middle = middle_row(batch);
  if ((batch.rows() <= row_limit_ || middle == 0) && try_step(batch, picked)) return;
  if (middle == 0)
    fail("out of memory: the {} chains of one answer do not fit in a step; lower engine.kv_memory_gb",
         batch.rows() - 1);
  const auto [first, second] = split_batch(batch, middle);
  run_in_parts(first, picked.first(first.picks.size()));
  run_in_parts(second, picked.subspan(first.picks.size()));
}

/// Runs a step at once. Where memory is too short for it no later one is as large, and false is returned.
bool Engine::try_step(const StepBatch& batch, std::span<Picked> picked) {
  try {
    call_backend([&] {
      backend_.step(batch, picked);
      if (!options_.observer) return;
      options_.observer->start(batch);
      options_.observer->finish();
    });
    return true;
  } catch (const OutOfMemory& error) {
    if (batch.rows() <= kFewestRows)
      fail("out of memory: even a step of {} tokens does not fit: {}; lower engine.kv_memory_gb",
           batch.rows(), error.what());
  }
  row_limit_ = (batch.rows() + 1) / 2;
  options_.tokens_per_step = std::min(options_.tokens_per_step, row_limit_);
  return false;
}

void Engine::finish_step(const Sink& done) {
  const Step& step = steps_[oldest_];
  stats_.waited_seconds += call_backend([&] {
    --in_flight_;
    if (options_.observer) options_.observer->finish();
    backend_.finish();
  });
  oldest_ = (oldest_ + 1) % steps_.size();
  if (speculator_) {
    const auto seconds = left_backend_ - std::max(step.started, std::exchange(last_finished_, left_backend_));
    const auto picks = static_cast<double>(step.batch.picks.size());
    speculator_->count_step(picks + prompt_share(backend_.config()) * (step.batch.rows() - picks),
                            std::chrono::duration<double>(seconds).count());
  }
  apply(step, done);
}

void Engine::apply(const Step& step, const Sink& done) {
  ++stats_.steps;
  size_t pick = 0;
  for (OpenSlot* slot : step.wanted) {
    const auto chains = static_cast<size_t>(step.batch.picks[pick].chains);
    pick += chains + take(*slot, std::span(step.picked).subspan(pick));
  }
  for (const auto& [role, resident] : step.complete) {
    stored_.keep(role, resident);
    residents_.drop(resident);
  }
  retire(done);
  stats_.peak_pages = residents_.peak_pages();
  if (on_step) on_step(stats_);
}

void Engine::retire(const Sink& done) {
  for (auto flight = flights_.begin(); flight != flights_.end();) {
    // Without an answer nothing else tells that a step still reads what its segments see.
    if (flight->slots.empty() && flight->last_step > stats_.steps) {
      ++flight;
      continue;
    }
    flight->finish_segments(residents_);
    if (flight->open_slots > 0 || !flight->prefilled()) {
      ++flight;
      continue;
    }
    std::vector<Answer> answers;
    for (OpenSlot& slot : flight->slots) {
      const Tokens& thought = slot.asked->thought;
      slot.answer.tokens.insert(slot.answer.tokens.begin(), thought.begin(), thought.end());
      answers.push_back(std::move(slot.answer));
    }
    flight->drafted.reset();
    Stack stack = std::move(flight->stack);
    flight = flights_.erase(flight);
    if (stack.next && next_round(stack, answers)) continue;
    join_rounds(stack, answers);
    done(std::move(stack), std::move(answers));
  }
}

/// Returns false where nothing is left to ask and the answers are kept.
bool Engine::next_round(const Stack& stack, const std::vector<Answer>& answers) {
  std::vector<Tokens> tokens;
  std::vector<double> logprobs;
  tokens.reserve(answers.size());
  for (const Answer& answer : answers) {
    tokens.push_back(answer.tokens);
    logprobs.push_back(answer.logprob);
  }
  const bool kept = stack.next->keeps_answers();
  Stack next = options_.expected_rounds ? stack.next->expected() : stack.next->after(tokens, logprobs);
  if (kept && next.slots.empty()) return false;
  next.window = stack.window;
  next.later_round = true;
  if (kept) {
    auto earlier = std::make_shared<EarlierRound>();
    earlier->stack.slots = stack.slots;
    earlier->stack.window = stack.window;
    earlier->stack.earlier = stack.earlier;
    earlier->answers = answers;
    next.earlier = std::move(earlier);
  }
  next_rounds_.push_back(std::move(next));
  return true;
}

/// After an error: a step in flight reads and writes memory of this engine.
void Engine::abandon_steps() {
  for (; in_flight_ > 0; --in_flight_) {
    try {
      backend_.finish();
    } catch (const std::exception&) {  // the first error is the one to report
    }
  }
}

std::vector<Stack> Engine::take_back() {
  std::vector<Stack> stacks;
  for (Flight& flight : flights_) {
    // Whoever decodes the stack again counts them.
    for (const OpenSlot& slot : flight.slots) {
      const bool counted = slot.closed && slot.asked->option == 0;
      (flight.stack.feeds_next() ? stats_.first_answers : stats_.answers) -= counted;
      stats_.entry_answers -= counted && flight.stack.earlier;
    }
    flight.drafted.reset();
    stacks.push_back(std::move(flight.stack));
  }
  flights_.clear();
  std::ranges::move(std::exchange(next_rounds_, {}), std::back_inserter(stacks));
  if (pending_) stacks.push_back(std::move(*std::exchange(pending_, std::nullopt)));
  return stacks;
}

/// Until the first of the segments that are to come is there.
void Engine::wait_for_store() {
  for (const Flight& flight : flights_)
    if (!flight.prefilled())
      if (const auto& fetch = flight.residents[flight.next_segment]->fetch) return fetch->wait();
}

/// What computing a token takes; 0: not known yet.
double Engine::token_seconds() const {
  if (options_.seconds_per_token > 0) return options_.seconds_per_token;
  if (stats_.steps < kMeasuredSteps || stats_.tokens() == 0) return 0;
  return stats_.step_seconds / static_cast<double>(stats_.tokens());
}

template <class Call>
double Engine::call_backend(Call&& call) {
  const auto start = std::chrono::steady_clock::now();
  const double host = std::chrono::duration<double>(start - left_backend_).count();
  stats_.host_seconds += host;
  if (in_flight_ == 0) stats_.idle_seconds += host;
  call();
  left_backend_ = std::chrono::steady_clock::now();
  const double inside = std::chrono::duration<double>(left_backend_ - start).count();
  stats_.step_seconds += inside;
  return inside;
}

}  // namespace sheaf
