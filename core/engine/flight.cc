#include "core/engine/flight.h"

#include <algorithm>

namespace sheaf {
namespace {

/// Whether the answers may be guessed. Those that see each other while they are decoded, or are dropped once
/// another option is likelier, advance together; chains pick together.
bool may_guess(const Stack& stack) {
  const auto alone = [](const Slot& slot) { return slot.prompts() == 1 && slot.option == 0; };
  const auto abreast = [](const Segment& segment) {
    return std::ranges::any_of(segment.sees, &Sight::abreast);
  };
  return std::ranges::any_of(stack.slots, alone) && std::ranges::none_of(stack.segments, abreast);
}

}  // namespace

Flight::Flight(Stack admitted, Residents& pool)
    : stack(std::move(admitted)),
      residents(pool.admit(stack)),
      finished(stack.segments.size(), false),
      open_answers(stack.segments.size(), 0),
      prompted(stack.segments.size()),
      open_slots(static_cast<int32_t>(stack.slots.size())),
      guessed(may_guess(stack)) {
  slots.reserve(stack.slots.size());
  for (const Slot& slot : stack.slots) {
    slots.push_back({this, &slot, slot.contrast});
    if (slot.search && slot.allowed) slots.back().search = std::make_unique<LikeliestSearch>(slot);
    prompted[slot.prompt].push_back(&slots.back());
    for (int32_t i = 0; i < slot.prompts(); ++i) ++open_answers[slot.answer + i];
  }
}

std::span<OpenSlot> Flight::options_of(const OpenSlot& slot) {
  const auto first = static_cast<size_t>(&slot - slots.data() - slot.asked->option);
  return std::span(slots).subspan(first, options_end(stack.slots, first) - first);
}

void Flight::finish_segments(Residents& pool) {
  for (size_t i = 0; i < next_segment; ++i) {
    if (finished[i] || open_answers[i] > 0) continue;
    finished[i] = true;
    pool.finish(stack.segments[i], residents[i], residents);
  }
}

}  // namespace sheaf
