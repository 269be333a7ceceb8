#include "core/engine/draft.h"

#include <algorithm>

#include "core/model/work.h"

namespace sheaf {
namespace {

constexpr size_t kFewTokens = 16;  // of an answer that a step with picks may compute

/// The segments that the answer of a slot sees, directly or not, and its own.
std::vector<bool> seen_by(const Stack& stack, const Slot& slot) {
  std::vector<bool> seen(stack.segments.size(), false);
  seen[slot.answer] = seen[slot.prompt] = true;
  for (size_t id = stack.segments.size(); id-- > 0;)
    if (seen[id])
      for (const Sight& sight : stack.segments[id].sees) seen[sight.segment] = true;
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
      pool_(make_pool(backend, options.pages, options.page_size), options.page_size),
      residents_(pool_, false),
      builder_(options.page_size) {}

double Draft::cost_beside(const ModelConfig& model) const {
  const Work token{1, 0, 1};
  return options_.relative_cost * gemm_flops(token, config()) / gemm_flops(token, model);
}

std::unique_ptr<Draft::Prompt> Draft::follow(const Stack& stack) {
  if (stack.positions() > config().context || residents_.pages_needed(stack) > residents_.room())
    return nullptr;
  return std::unique_ptr<Prompt>(new Prompt(*this, stack));
}

void Draft::run_step() {
  builder_.close();
  if (batch_.rows() == 0) return;
  const size_t first = picked_.size();
  picked_.resize(first + batch_.picks.size());
  tokens_ += batch_.rows();
  backend_.step(batch_, std::span(picked_).subspan(first));
}

/// Runs a step that is full, and begins the next.
void Draft::make_room() {
  if (room() > 0) return;
  run_step();
  builder_.begin(batch_);
}

/// The tokens of a segment that are missing, in as many steps as they take.
void Draft::add_segment(Prompt& prompt, SegmentId id) {
  const Segment& segment = prompt.stack_.segments[id];
  Resident* own = prompt.residents_[id];
  const auto total = static_cast<int32_t>(segment.tokens.size());
  while (own->keys < total) {
    const int32_t first = own->keys, rows = std::min(total - first, room());
    residents_.grow(own, first + rows);
    builder_.add(segment, own, prompt.residents_, first,
                 std::span(segment.tokens).subspan(static_cast<size_t>(first), static_cast<size_t>(rows)));
    make_room();
  }
}

/// How many tokens of the answer are in the pool as they are now.
size_t Draft::held(const Line& line) {
  const Tokens& fed = line.prompt->fed_[line.slot];
  return static_cast<size_t>(std::ranges::mismatch(fed, line.tokens).in1 - fed.begin());
}

/// The first `end` tokens of an answer, as far as they are missing; the last of them in any case.
void Draft::add_answer(const Line& line, size_t end) {
  Prompt& prompt = *line.prompt;
  const Slot& slot = prompt.stack_.slots[line.slot];
  const Segment& segment = prompt.stack_.segments[slot.answer];
  Resident* own = prompt.residents_[slot.answer];
  const auto wanted = std::span(line.tokens).first(end);
  const size_t first = std::min(held(line), end - 1);
  prompt.fed_[line.slot].assign(wanted.begin(), wanted.end());
  residents_.grow(own, static_cast<int32_t>(segment.tokens.size() + end));
  builder_.add(segment, own, prompt.residents_, static_cast<int32_t>(segment.tokens.size() + first),
               wanted.subspan(first));
}

void Draft::catch_up(std::span<const Line* const> lines) {
  builder_.begin(batch_);
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
    for (size_t known = held(*line); line->tokens.size() > known + kFewTokens;) {
      known = std::min(line->tokens.size() - 1, known + static_cast<size_t>(room()));
      add_answer(*line, known);
      make_room();
    }
  }
  run_step();
}

std::span<const Picked> Draft::next(std::span<const Line* const> lines) {
  picked_.clear();
  builder_.begin(batch_);
  for (const Line* line : lines) {
    add_answer(*line, line->tokens.size());
    batch_.picks.push_back({.row = batch_.rows() - 1});
    make_room();
  }
  run_step();
  return picked_;
}

}  // namespace sheaf
