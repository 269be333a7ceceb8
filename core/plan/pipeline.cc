#include "core/plan/pipeline.h"

#include <algorithm>

#include "core/stopwatch.h"

namespace sheaf {

bool Pipeline::run(const Emit& emit, const Refuse& refuse) {
  auto next = [&]() -> std::optional<Stack> {
    while (stacks_.empty() && !drained_ && !engine_.interrupted()) {
      drained_ = !read_window();
      emit_finished(emit, refuse);  // a window may have nothing to decode
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
    emit_finished(emit, refuse);
  };
  return engine_.run(next, done);
}

bool Pipeline::read_window() {
  Window window;
  window.number = stats_.windows;
  // Windows begin at multiples of their size, wherever reading began: a resumed run and a shard have the
  // windows of a run in one go.
  const int64_t end = (corpus_.position() / window_rows_ + 1) * window_rows_;
  bool more = true;
  {
    const Stopwatch watch(stats_.read_seconds);
    while (more && corpus_.position() < end) {
      if (engine_.interrupted()) return false;  // half a window is none
      auto row = corpus_.next();
      if (!row)
        more = false;
      else if (auto* item = std::get_if<Item>(&*row))
        window.items.push_back(std::move(*item));
      else
        window.rejects.emplace_back(window.items.size(), std::get<Reject>(std::move(*row)));
    }
  }
  window.end = corpus_.position();
  const Stopwatch watch(stats_.plan_seconds);
  Plan plan = planner_.plan(window.items);
  window.refused.assign(window.items.size(), false);
  for (auto& [index, reason] : plan.refused) {
    const auto i = static_cast<size_t>(index);
    window.rejects.push_back({i, {window.items[i].place, window.items[i].id, std::move(reason)}});
    window.refused[i] = true;
    window.items[i] = {};
  }
  // A corpus reject before item i was read before that item was.
  std::stable_sort(window.rejects.begin(), window.rejects.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  stats_.rejects += static_cast<int64_t>(window.rejects.size());
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

void Pipeline::emit_finished(const Emit& emit, const Refuse& refuse) {
  const Stopwatch watch(stats_.emit_seconds);
  while (!windows_.empty() && windows_.front().open == 0) {
    const Window& window = windows_.front();
    auto reject = window.rejects.begin();
    for (size_t i = 0; i <= window.items.size(); ++i) {
      for (; reject != window.rejects.end() && reject->first == i; ++reject) refuse(reject->second);
      if (i == window.items.size() || window.refused[i]) continue;
      emit(window.items[i], window.answers[i]);
      ++stats_.items;
    }
    if (on_window) on_window(window.end);
    windows_.pop_front();
  }
}

}  // namespace sheaf
