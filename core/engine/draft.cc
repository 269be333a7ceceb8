#include "core/engine/draft.h"

#include <algorithm>

#include "core/base/error.h"

namespace sheaf {
namespace {

constexpr size_t kFewTokens = 16;  // of an answer that a step with picks may compute

int32_t make_draft_pool(Backend& backend, const DraftOptions& options) {
  backend.allocate_kv(options.pages, options.page_size);
  return options.pages;
}

/// The segments that the answer of a slot sees, directly or not, and its own.
std::vector<bool> seen_by(const Stack& stack, const Slot& slot) {
  std::vector<bool> seen(stack.segments.size(), false);
  seen[static_cast<size_t>(slot.answer)] = seen[static_cast<size_t>(slot.prompt)] = true;
  for (size_t id = stack.segments.size(); id-- > 0;)
    if (seen[id])
      for (const Sight& sight : stack.segments[id].sees) seen[static_cast<size_t>(sight.segment)] = true;
  return seen;
}

}  // namespace

Draft::Prompt::Prompt(Draft& draft, const Stack& stack)
    : draft_(draft),
      stack_(stack),
      residents_(draft.residents_.admit(stack)),
      fed_(stack.slots.size()),
      ready_(stack.slots.size(), false) {}

Draft::Prompt::~Prompt() {
  for (size_t i = 0; i < residents_.size(); ++i)
    draft_.residents_.finish(stack_.segments[i], residents_[i], residents_);
}

Draft::Draft(Backend& backend, const DraftOptions& options)
    : backend_(backend),
      options_(options),
      pool_(make_draft_pool(backend, options), options.page_size),
      residents_(pool_, false),
      builder_(options.page_size) {}

std::unique_ptr<Draft::Prompt> Draft::follow(const Stack& stack) {
  if (stack.positions() > config().context || residents_.pages_needed(stack) > residents_.room())
    return nullptr;
  return std::unique_ptr<Prompt>(new Prompt(*this, stack));
}

void Draft::begin_step() {
  batch_.clear();
  builder_.begin(batch_);
}

void Draft::run_step() {
  builder_.close();
  picked_.resize(batch_.picks.size());
  tokens_ += batch_.rows();
  if (batch_.rows() == 0) return;
  try {
    backend_.step(batch_, picked_);
  } catch (const OutOfMemory& error) {
    fail(
        "out of memory: a step of {} tokens of the draft does not fit: {}; leave method.speculate out, or "
        "lower engine.kv_memory_gb",
        batch_.rows(), error.what());
  }
}

/// The tokens of a segment that are missing, in as many steps as they take.
void Draft::add_segment(Prompt& prompt, SegmentId id) {
  const Segment& segment = prompt.stack_.segments[static_cast<size_t>(id)];
  Resident* own = prompt.residents_[static_cast<size_t>(id)];
  const auto total = static_cast<int32_t>(segment.tokens.size());
  while (own->keys < total) {
    const int32_t first = own->keys, rows = std::min(total - first, room());
    residents_.grow(own, first + rows);
    builder_.add(segment, own, prompt.residents_, first,
                 std::span(segment.tokens).subspan(static_cast<size_t>(first), static_cast<size_t>(rows)));
    if (room() > 0) continue;
    run_step();
    begin_step();
  }
}

/// The first `end` tokens of an answer, as far as they are missing; the last of them in any case.
void Draft::add_answer(const Line& line, size_t end) {
  Prompt& prompt = *line.prompt;
  const Slot& slot = prompt.stack_.slots[static_cast<size_t>(line.slot)];
  const Segment& segment = prompt.stack_.segments[static_cast<size_t>(slot.answer)];
  Resident* own = prompt.residents_[static_cast<size_t>(slot.answer)];
  Tokens& fed = prompt.fed_[static_cast<size_t>(line.slot)];
  const auto wanted = std::span(line.tokens).first(end);
  const auto same = std::ranges::mismatch(fed, wanted).in1 - fed.begin();
  const size_t first = std::min(static_cast<size_t>(same), end - 1);
  fed.assign(wanted.begin(), wanted.end());
  residents_.grow(own, static_cast<int32_t>(segment.tokens.size() + end));
  builder_.add(segment, own, prompt.residents_, static_cast<int32_t>(segment.tokens.size() + first),
               wanted.subspan(first));
}

void Draft::catch_up(std::span<const Line* const> lines) {
  begin_step();
  for (const Line* line : lines) {
    Prompt& prompt = *line->prompt;
    const auto slot = static_cast<size_t>(line->slot);
    if (!prompt.ready_[slot]) {
      const std::vector<bool> seen = seen_by(prompt.stack_, prompt.stack_.slots[slot]);
      for (size_t id = 0; id < seen.size(); ++id)
        if (seen[id]) add_segment(prompt, static_cast<SegmentId>(id));
      prompt.ready_[slot] = true;
    }
    // What was decoded while nothing was asked of the draft.
    for (size_t known = prompt.fed_[slot].size(); line->tokens.size() > known + kFewTokens;) {
      known = std::min(line->tokens.size() - 1, known + static_cast<size_t>(room()));
      add_answer(*line, known);
      if (room() > 0) continue;
      run_step();
      begin_step();
    }
  }
  run_step();
}

std::span<const Picked> Draft::next(std::span<const Line* const> lines) {
  begin_step();
  for (const Line* line : lines) {
    add_answer(*line, line->tokens.size());
    batch_.picks.push_back({.row = batch_.rows() - 1});
  }
  run_step();
  return picked_;
}

}  // namespace sheaf
