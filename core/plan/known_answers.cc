#include "core/plan/known_answers.h"

#include <algorithm>
#include <utility>

#include "core/base/error.h"

namespace sheaf {

/// `lost`: keys of answers that will not come.
void KnownAnswers::leave_out(std::span<const Record> records, std::vector<ReadyRecord>& ready,
                             AnswerScope scope, const Keys& lost, std::vector<KeyedAnswers>& keyed) {
  keyed.assign(records.size(), {});
  for (size_t i = 0; i < records.size(); ++i) keyed[i].taken = ready[i].parts.known;
  if (!store || scope == AnswerScope::prompt) return;
  const bool together = scope == AnswerScope::record;
  Keys here;
  for (size_t i = 0; i < records.size(); ++i) {
    if (!ready[i].refused.empty()) continue;
    KeyedAnswers& each = keyed[i];
    each.keys = store->keys(records[i], ready[i].parts, together);
    for (size_t q = 0; q < each.keys.size(); ++q) {
      const AnswerKey& key = each.keys[q];
      const std::lock_guard lock(mutex_);
      each.known.push_back(!each.takes(q) && !lost.contains(key) &&
                           (here.contains(key) || to_come_.contains(key) || store->knows(key)));
    }
    const auto count = std::ranges::count(each.known, true);
    if (count == 0 || (together && count < std::ssize(each.known))) each.known.clear();
    for (size_t q = 0; q < each.keys.size(); ++q)
      if (!each.takes(q)) here.insert(each.keys[q]);
    ready[i].parts.leave_out(each.known);
  }
}

Plan KnownAnswers::plan(Task& task, Planner& planner, std::span<const Record> records,
                        std::vector<KeyedAnswers>& keyed) {
  Keys lost;
  while (true) {
    std::vector<ReadyRecord> ready = make_ready(task, records);
    leave_out(records, ready, planner.scope(), lost, keyed);
    Plan plan = planner.plan(std::move(ready));
    // A record that is refused or cut has no answers that others could take.
    for (size_t i = 0; i < records.size(); ++i) {
      const Outcome& planned = plan.records[i].outcome;
      if (!planned.answers.empty() && planned.parts == 1 && planned.cut_tokens == 0) continue;
      for (const AnswerKey& key : std::exchange(keyed[i], {}).keys) lost.insert(key);
    }
    const bool missed = !lost.empty() && std::ranges::any_of(keyed, [&](const KeyedAnswers& each) {
      for (size_t q = 0; q < each.keys.size(); ++q)
        if (each.knows(q) && lost.contains(each.keys[q])) return true;
      return false;
    });
    if (missed) continue;
    const std::lock_guard lock(mutex_);
    for (const KeyedAnswers& each : keyed)
      for (size_t q = 0; q < each.keys.size(); ++q)
        if (!each.takes(q)) to_come_.insert(each.keys[q]);
    return plan;
  }
}

int64_t KnownAnswers::complete(const KeyedAnswers& keyed, std::vector<Answer>& answers) {
  int64_t reused = 0;
  for (size_t q = 0; q < keyed.keys.size(); ++q) {
    const AnswerKey& key = keyed.keys[q];
    if (keyed.takes(q)) continue;
    if (keyed.knows(q)) {
      std::optional<Answer> found = store->find(key);
      if (!found) fail("a known answer is gone");
      answers[q] = *std::move(found);
      if (!store->was_kept(key)) reused += count_answers(answers[q]);
    }
    store->add(key, answers[q]);
  }
  const std::lock_guard lock(mutex_);
  for (size_t q = 0; q < keyed.keys.size(); ++q)
    if (!keyed.takes(q)) to_come_.erase(keyed.keys[q]);
  return reused;
}

}  // namespace sheaf
