#include <algorithm>

#include "core/base/error.h"
#include "core/base/random_stream.h"
#include "core/methods/method.h"

namespace sheaf {
namespace {

/// A stack whose answers come after their thoughts.
class AfterThoughts final : public NextRound {
 public:
  explicit AfterThoughts(Stack stack) : stack_(std::move(stack)) {}

  Stack after(std::span<const Tokens> thoughts, std::span<const double>) const override {
    return make([&](size_t i, const Thinking& thinking) {
      const auto end = std::ranges::find(thoughts[i], thinking.end);
      Tokens thought(thoughts[i].begin(), end);
      const bool cut = end == thoughts[i].end() && std::cmp_greater_equal(thought.size(), thinking.budget);
      append(thought, cut ? thinking.cut : thinking.close);
      return thought;
    });
  }

  Stack longest() const override {
    return make([](size_t, const Thinking& thinking) {
      Tokens thought(static_cast<size_t>(thinking.budget), 0);
      append(thought, thinking.cut);
      return thought;
    });
  }

 private:
  template <class Thought>
  Stack make(const Thought& thought) const {
    Stack stack = stack_;
    for (size_t i = 0; i < stack.slots.size(); ++i) {
      Slot& slot = stack.slots[i];
      slot.thought = thought(i, *slot.thinking);
      append(stack.segments[static_cast<size_t>(slot.answer)].tokens, slot.thought);
      slot.prompt = slot.answer;
      slot.alone_tokens += static_cast<int32_t>(slot.thought.size());
    }
    return stack;
  }

  Stack stack_;
};

}  // namespace

void think_first(Stack& stack) {
  const auto thinks = [](const Slot& slot) { return slot.thinking != nullptr; };
  if (std::ranges::none_of(stack.slots, thinks)) return;
  if (stack.next || !std::ranges::all_of(stack.slots, thinks))
    fail("a prompt has answers that think first beside others");
  for (const Segment& segment : stack.segments)
    for (const Sight& sight : segment.sees)
      for (const Slot& slot : stack.slots)
        if (sight.segment == slot.answer && slot.answer != slot.prompt)
          fail("an answer that thinks first is seen by another segment");
  auto answers = std::make_shared<AfterThoughts>(stack);
  for (Slot& slot : stack.slots) {
    slot.max_tokens = slot.thinking->budget;
    slot.last = slot.thinking->end;
    slot.stop = Stop::text;
    slot.allowed = nullptr;
    slot.watch = nullptr;
    slot.search = nullptr;
    slot.stream = mix(slot.stream, ~uint64_t{0});  // none of the answers'
    if (slot.decoding && !slot.decoding->stops.empty()) {
      auto decoding = std::make_shared<Decoding>(*slot.decoding);
      decoding->stops.clear();  // they are for the answer
      slot.decoding = std::move(decoding);
    }
  }
  stack.next = std::move(answers);
}

}  // namespace sheaf
