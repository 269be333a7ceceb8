#include "core/plan/pipeline.h"

#include <algorithm>

#include "core/stopwatch.h"

namespace sheaf {

bool Pipeline::run(const Emit& emit, const Refuse& refuse) {
  auto next = [&]() -> std::optional<Stack> {
    while (stacks_.empty() && !drained_ && !engine_.interrupted()) {
      drained_ = !read_window(refuse);
      emit_finished(emit);  // a window may have nothing to decode
    }
    if (stacks_.empty()) return std::nullopt;
    Stack stack = std::move(stacks_.front());
    stacks_.pop_front();
    if (on_stack)
      on_stack(stack, windows_[static_cast<size_t>(stack.window - windows_.front().number)].items);
    return stack;
  };
  auto done = [&](Stack&& stack, std::vector<Answer>&& answers) {
    Window& window = windows_[static_cast<size_t>(stack.window - windows_.front().number)];
    for (size_t i = 0; i < answers.size(); ++i) {
      const Slot& slot = stack.slots[i];
      window.answers[static_cast<size_t>(slot.item)][static_cast<size_t>(slot.question)] =
          std::move(answers[i]);
      if (--window.open_of_item[static_cast<size_t>(slot.item)] == 0) ++stats_.decoded;
    }
    window.open -= static_cast<int64_t>(answers.size());
    emit_finished(emit);
  };
  return engine_.run(next, done);
}

bool Pipeline::read_window(const Refuse& refuse) {
  Window window;
  window.number = stats_.windows;
  bool more = true;
  {
    const Stopwatch watch(stats_.read_seconds);
    for (int32_t rows = 0; rows < window_rows_ && !engine_.interrupted(); ++rows) {
      auto row = corpus_.next();
      if (!row) {
        more = false;
        break;
      }
      if (auto* item = std::get_if<Item>(&*row)) {
        window.items.push_back(std::move(*item));
      } else {
        refuse(std::get<Reject>(*row));
        ++stats_.rejects;
      }
    }
  }
  const Stopwatch watch(stats_.plan_seconds);
  Plan plan = planner_.plan(window.items);
  window.refused.assign(window.items.size(), false);
  for (const auto& [index, reason] : plan.refused) {
    const Item& item = window.items[static_cast<size_t>(index)];
    refuse({item.place, item.id, reason});
    window.refused[static_cast<size_t>(index)] = true;
    window.items[static_cast<size_t>(index)] = {};
    ++stats_.rejects;
  }
  window.open_of_item = plan.slots_of_item;
  for (int32_t slots : plan.slots_of_item) window.answers.emplace_back(static_cast<size_t>(slots));
  for (Stack& stack : plan.stacks) {
    stack.window = window.number;
    window.open += static_cast<int64_t>(stack.slots.size());
    stacks_.push_back(std::move(stack));
  }
  windows_.push_back(std::move(window));
  ++stats_.windows;
  return more;
}

void Pipeline::emit_finished(const Emit& emit) {
  const Stopwatch watch(stats_.emit_seconds);
  while (!windows_.empty() && windows_.front().open == 0) {
    const Window& window = windows_.front();
    for (size_t i = 0; i < window.items.size(); ++i) {
      if (window.refused[i]) continue;
      emit(window.items[i], window.answers[i]);
      ++stats_.items;
    }
    windows_.pop_front();
  }
}

}  // namespace sheaf
