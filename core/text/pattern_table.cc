#include <algorithm>
#include <map>

#include "core/text/pattern.h"

namespace sheaf {

/// Turns the steps of a pattern into states, each a set of steps.
class PatternTableMaker {
 public:
  PatternTableMaker(const Pattern& pattern, std::string_view without)
      : pattern_(pattern), steps_(pattern.steps_), without_(without) {}

  std::optional<PatternTable> make() {
    for (const Step& step : steps_)
      if (step.kind == Step::Kind::none_of || std::ranges::any_of(step.ranges, is_foreign))
        return std::nullopt;
    find_state(reach({0}));
    for (size_t state = 0; state < states_.size(); ++state) {
      if (states_.size() > kMostStates) return std::nullopt;
      table_.next.emplace_back().fill(PatternTable::kNowhere);
      for (int letter = 0; letter < PatternTable::kLetters; ++letter)
        table_.next[state][static_cast<size_t>(letter)] =
            state_after(states_[state], static_cast<char>(0x20 + letter));
    }
    for (const Steps& steps : states_)
      table_.accepts.push_back(
          std::ranges::any_of(steps, [&](size_t at) { return steps_[at].kind == Step::Kind::done; }));
    drop_dead_ends();
    const bool empty = !table_.accepts[0] && std::ranges::all_of(table_.next[0], [](int16_t to) {
      return to == PatternTable::kNowhere;
    });
    if (empty) return std::nullopt;
    return std::move(table_);
  }

 private:
  using Step = Pattern::Step;
  using Steps = std::vector<size_t>;  ///< ascending
  static constexpr size_t kMostStates = 256;

  /// Whether a model might write a letter of the range that the table does not have. Blanks it may.
  static bool is_foreign(const std::pair<uint32_t, uint32_t>& range) {
    return range.second >= 0x7f && range != std::pair<uint32_t, uint32_t>{0xa0, 0xa0};
  }

  Steps reach(const Steps& open) const {
    Pattern::Walk walk{Steps(pattern_.steps_.size())};
    Steps found;
    for (const size_t from : open) pattern_.reach(from, 1, walk, found);
    std::ranges::sort(found);
    return found;
  }

  int16_t find_state(Steps steps) {
    const auto [at, added] = known_.try_emplace(steps, static_cast<int16_t>(states_.size()));
    if (added) states_.push_back(std::move(steps));
    return at->second;
  }

  int16_t state_after(const Steps& from, char letter) {
    if (without_.find(letter) != std::string_view::npos || states_.size() > kMostStates)
      return PatternTable::kNowhere;
    Steps open;
    for (const size_t at : from)
      if (std::ranges::any_of(steps_[at].ranges, [&](const auto& range) {
            return static_cast<uint32_t>(letter) >= range.first &&
                   static_cast<uint32_t>(letter) <= range.second;
          }))
        open.push_back(at + 1);
    return open.empty() ? PatternTable::kNowhere : find_state(reach(open));
  }

  void drop_dead_ends() {
    std::vector<bool> live = table_.accepts;
    for (bool changed = true; changed;) {
      changed = false;
      for (size_t state = 0; state < live.size(); ++state) {
        if (live[state]) continue;
        live[state] = std::ranges::any_of(table_.next[state], [&](int16_t to) {
          return to != PatternTable::kNowhere && live[static_cast<size_t>(to)];
        });
        changed = changed || live[state];
      }
    }
    for (auto& ways : table_.next)
      for (int16_t& to : ways)
        if (to != PatternTable::kNowhere && !live[static_cast<size_t>(to)]) to = PatternTable::kNowhere;
  }

  const Pattern& pattern_;
  const std::vector<Step>& steps_;
  std::string_view without_;
  std::vector<Steps> states_;
  std::map<Steps, int16_t> known_;
  PatternTable table_;
};

std::optional<PatternTable> make_pattern_table(const Pattern& pattern, std::string_view without) {
  return PatternTableMaker(pattern, without).make();
}

}  // namespace sheaf
