#include "core/engine/engine.h"

#include <algorithm>

#include "core/engine/random_stream.h"
#include "core/error.h"
#include "core/stopwatch.h"

namespace sheaf {

Engine::Engine(Backend& backend, const StopRules& rules, const EngineOptions& options)
    : backend_(backend),
      rules_(rules),
      options_(options),
      pool_(options.pages, options.page_size),
      residents_(pool_) {
  backend_.allocate_kv(options.pages, options.page_size);
}

bool Engine::fits(const Stack& stack) const {
  // Shared segments that happen to be resident now may be gone when it is admitted, so all of it is counted.
  int64_t pages = 0;
  for (int32_t keys : stack.most_keys()) pages += pool_.pages_for(keys);
  return pages <= pool_.total();
}

bool Engine::run(const Source& next, const Sink& done) {
  drained_ = false;
  std::vector<Picked> picked;
  while (true) {
    if (interrupted()) return false;
    admit(next);
    if (flights_.empty()) return !interrupted();

    batch_.clear();
    wanted_.clear();
    looked_.clear();
    looked_at_.clear();
    add_decode_rows();
    add_prefill_rows();
    close_batch();

    picked.resize(batch_.picks.size());
    {
      const Stopwatch watch(stats_.step_seconds);
      backend_.step(batch_, picked);
    }
    ++stats_.steps;

    for (size_t i = 0; i < wanted_.size(); ++i) take(wanted_[i], picked[i]);
    for (auto flight = flights_.begin(); flight != flights_.end();) {
      finish_segments(*flight);
      if (flight->open_slots > 0 || flight->next_segment < flight->stack.segments.size()) {
        ++flight;
        continue;
      }
      std::vector<Answer> answers;
      for (SlotState& slot : flight->slots) answers.push_back(std::move(slot.answer));
      Stack stack = std::move(flight->stack);
      flight = flights_.erase(flight);
      done(std::move(stack), std::move(answers));
    }
    stats_.peak_pages = residents_.peak_pages();
    if (on_step) on_step(stats_);
  }
}

void Engine::admit(const Source& next) {
  int64_t backlog = 0;  // prefill rows of flights already admitted
  for (const Flight& flight : flights_)
    for (size_t i = flight.next_segment; i < flight.stack.segments.size(); ++i)
      backlog += static_cast<int64_t>(flight.stack.segments[i].tokens.size()) - flight.residents[i]->keys;

  while (backlog < options_.rows_per_step) {
    if (!pending_ && !drained_) {
      pending_ = next();
      drained_ = !pending_;
      if (pending_) check_stack(*pending_);
    }
    if (!pending_) return;
    const auto slots = static_cast<int32_t>(pending_->slots.size());
    if (open_slots_ > 0 && open_slots_ + slots > options_.rows_per_step) return;
    const int32_t needed = residents_.pages_needed(*pending_);
    if (needed > residents_.room()) {
      if (flights_.empty())
        fail("a prompt needs {} pages of keys and values and the pool has {}", needed, pool_.total());
      return;
    }
    Flight& flight = flights_.emplace_back();
    flight.stack = std::move(*pending_);
    pending_.reset();
    flight.residents = residents_.admit(flight.stack);
    flight.finished.assign(flight.stack.segments.size(), false);
    flight.prompted.resize(flight.stack.segments.size());
    flight.slots.resize(flight.stack.slots.size());
    flight.open_slots = slots;
    open_slots_ += slots;
    for (int32_t slot = 0; slot < slots; ++slot)
      flight.prompted[static_cast<size_t>(flight.stack.slots[static_cast<size_t>(slot)].prompt)].push_back(
          slot);
    backlog += flight.stack.prompt_tokens();
  }
}

void Engine::add_decode_rows() {
  for (Flight& flight : flights_) {
    for (int32_t slot = 0; slot < static_cast<int32_t>(flight.slots.size()); ++slot) {
      SlotState& state = flight.slots[static_cast<size_t>(slot)];
      if (!state.waiting) continue;
      const SegmentId segment = flight.stack.slots[static_cast<size_t>(slot)].answer;
      const int32_t index = flight.residents[static_cast<size_t>(segment)]->keys;
      add_rows(flight, segment, index, std::span(&state.answer.tokens.back(), 1));
      want(flight, slot);
      state.waiting = false;
      ++stats_.decode_rows;
    }
  }
}

void Engine::add_prefill_rows() {
  for (Flight& flight : flights_) {
    for (; flight.next_segment < flight.stack.segments.size(); ++flight.next_segment) {
      const Segment& segment = flight.stack.segments[flight.next_segment];
      const int32_t keys = flight.residents[flight.next_segment]->keys;
      const auto total = static_cast<int32_t>(segment.tokens.size());
      if (keys < total) {
        const int32_t rows = std::min(total - keys, options_.rows_per_step - batch_.rows());
        if (rows <= 0) return;
        add_rows(flight, static_cast<SegmentId>(flight.next_segment), keys,
                 std::span(segment.tokens).subspan(static_cast<size_t>(keys), static_cast<size_t>(rows)));
        stats_.prefill_rows += rows;
        if (keys + rows < total) return;
        for (int32_t slot : flight.prompted[flight.next_segment]) want(flight, slot);
      }
    }
  }
}

void Engine::add_rows(Flight& flight, SegmentId id, int32_t first, std::span<const TokenId> tokens) {
  const Segment& segment = flight.stack.segments[static_cast<size_t>(id)];
  Resident* own = flight.residents[static_cast<size_t>(id)];
  const auto count = static_cast<int32_t>(tokens.size());
  const int32_t first_row = batch_.rows();
  residents_.grow(own, first + count);
  for (int32_t i = 0; i < count; ++i) {
    const int32_t index = first + i;
    batch_.tokens.push_back(tokens[static_cast<size_t>(i)]);
    batch_.positions.push_back(segment.first_position + index);
    batch_.kv_slots.push_back(own->pages[static_cast<size_t>(index / pool_.page_size())] * pool_.page_size() +
                              index % pool_.page_size());
  }
  auto look = [&](Resident* resident, auto visible) {
    if (resident->keys == 0) return;
    const auto [at, added] = looked_at_.try_emplace(resident->serial, looked_.size());
    if (added) looked_.push_back({resident, {}});
    for (int32_t i = 0; i < count; ++i)
      looked_[at->second].rows.push_back({first_row + i, visible(first + i)});
  };
  for (const Sight& sight : segment.sees) {
    Resident* seen = flight.residents[static_cast<size_t>(sight.segment)];
    look(seen, [&](int32_t index) { return sight.abreast ? std::min(seen->keys, index + 1) : seen->keys; });
  }
  look(own, [](int32_t index) { return index + 1; });
}

void Engine::want(Flight& flight, int32_t slot) {
  const Slot& asked = flight.stack.slots[static_cast<size_t>(slot)];
  const SlotState& state = flight.slots[static_cast<size_t>(slot)];
  Pick pick{batch_.rows() - 1, options_.temperature, options_.top_k, options_.top_p};
  pick.uniform = uniform(options_.seed, asked.stream, state.answer.tokens.size());
  if (asked.allowed) {
    const auto allowed = asked.allowed->allowed(state.node);
    pick.first_allowed = static_cast<int32_t>(batch_.allowed.size());
    pick.allowed_count = static_cast<int32_t>(allowed.size());
    batch_.allowed.insert(batch_.allowed.end(), allowed.begin(), allowed.end());
  }
  batch_.picks.push_back(pick);
  wanted_.push_back({&flight, slot});
}

void Engine::close_batch() {
  // A row's sights have ascending first positions, so this order is the order of keys for every row.
  std::sort(looked_.begin(), looked_.end(), [](const Looked& a, const Looked& b) {
    return std::pair(a.resident->first_position, a.resident->serial) <
           std::pair(b.resident->first_position, b.resident->serial);
  });
  for (const Looked& looked : looked_) {
    batch_.tiles.push_back({static_cast<int32_t>(batch_.spans.size()),
                            static_cast<int32_t>(batch_.tile_rows.size()),
                            static_cast<int32_t>(looked.rows.size())});
    batch_.spans.push_back({static_cast<int32_t>(batch_.pages.size()), looked.resident->keys});
    batch_.pages.insert(batch_.pages.end(), looked.resident->pages.begin(), looked.resident->pages.end());
    batch_.tile_rows.insert(batch_.tile_rows.end(), looked.rows.begin(), looked.rows.end());
  }
}

void Engine::take(Wanted wanted, Picked picked) {
  Flight& flight = *wanted.flight;
  const Slot& asked = flight.stack.slots[static_cast<size_t>(wanted.slot)];
  SlotState& state = flight.slots[static_cast<size_t>(wanted.slot)];
  Answer& answer = state.answer;
  answer.logprob += static_cast<double>(picked.logprob);
  ++stats_.answer_tokens;
  if (!asked.allowed && rules_.ends_text(picked.token))
    return close_slot(flight, wanted.slot, Ending::end_of_text);
  answer.tokens.push_back(picked.token);
  if (asked.allowed) {
    state.node = asked.allowed->advance(state.node, picked.token);
    if (state.node < 0) return close_slot(flight, wanted.slot, Ending::chosen);
  } else if (rules_.ends_answer(asked.stop, answer.tokens)) {
    return close_slot(flight, wanted.slot, Ending::delimiter);
  }
  const auto tokens = static_cast<int32_t>(answer.tokens.size());
  if (tokens == asked.max_tokens || tokens == options_.assumed_tokens)
    return close_slot(flight, wanted.slot, Ending::length);
  state.waiting = true;
}

void Engine::close_slot(Flight& flight, int32_t slot, Ending ending) {
  SlotState& state = flight.slots[static_cast<size_t>(slot)];
  const Slot& asked = flight.stack.slots[static_cast<size_t>(slot)];
  state.answer.ending = ending;
  state.open = false;
  --flight.open_slots;
  --open_slots_;
  ++stats_.answers;
  const int32_t grown =
      flight.residents[static_cast<size_t>(asked.answer)]->keys -
      static_cast<int32_t>(flight.stack.segments[static_cast<size_t>(asked.answer)].tokens.size());
  stats_.alone_rows += asked.alone_tokens + grown;
}

void Engine::finish_segments(Flight& flight) {
  std::vector<bool> open(flight.stack.segments.size(), false);
  for (size_t slot = 0; slot < flight.slots.size(); ++slot)
    if (flight.slots[slot].open) open[static_cast<size_t>(flight.stack.slots[slot].answer)] = true;
  for (size_t i = 0; i < flight.next_segment; ++i) {
    if (flight.finished[i] || open[i]) continue;
    flight.finished[i] = true;
    residents_.finish(flight.stack.segments[i], flight.residents[i], flight.residents);
  }
}

}  // namespace sheaf
