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
    size_t next = 0;
    return make([&](const Thinking& thinking) {
      const Tokens& said = thoughts[next++];
      const auto end = std::ranges::find(said, thinking.end);
      Tokens thought(said.begin(), end);
      const bool cut = end == said.end() && std::cmp_greater_equal(thought.size(), thinking.budget);
      append(thought, cut ? thinking.cut : thinking.close);
      return thought;
    });
  }

  Stack longest() const override {
    return make([](const Thinking& thinking) {
      Tokens thought(static_cast<size_t>(thinking.budget), 0);
      append(thought, thinking.cut);
      return thought;
    });
  }

 private:
  template <class Thought>
  Stack make(const Thought& thought) const {
    Stack stack = stack_;
    for (Slot& slot : stack.slots) {
      if (!slot.thinking) continue;
      slot.thought = thought(*slot.thinking);
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
  if (stack.next) fail("answers of a second round cannot think first");
  for (const Segment& segment : stack.segments)
    for (const Sight& sight : segment.sees)
      for (const Slot& slot : stack.slots)
        if (sight.segment == slot.answer && slot.answer != slot.prompt)
          fail("an answer that thinks first is seen by another segment");
  auto answers = std::make_shared<AfterThoughts>(stack);
  std::erase_if(stack.slots, [&](const Slot& slot) { return !thinks(slot); });
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
