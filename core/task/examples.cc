#include "core/task/examples.h"

#include "core/base/random_stream.h"

namespace sheaf {

const std::vector<Example>& Examples::of(std::string_view category) const {
  static const std::vector<Example> none;
  const auto found = by_category.find(category);
  return found == by_category.end() ? none : found->second;
}

void ExampleChoice::add(const std::string& category, Example example) {
  if (most_ <= 0) return;
  auto& chosen = chosen_[category];
  Rank rank{mix(seed_, hash_text(example.document)), std::move(example.document)};
  const auto [place, added] = chosen.try_emplace(std::move(rank), example.gold);
  // Of two that say different things of one document, always the same one counts.
  if (!added && example.gold < place->second) place->second = std::move(example.gold);
  if (std::ssize(chosen) > most_) chosen.erase(std::prev(chosen.end()));
}

std::map<std::string, std::vector<Example>, std::less<>> ExampleChoice::take() {
  std::map<std::string, std::vector<Example>, std::less<>> taken;
  for (auto& [category, chosen] : chosen_)
    for (auto& [rank, gold] : chosen) taken[category].push_back({rank.second, std::move(gold)});
  chosen_.clear();
  return taken;
}

}  // namespace sheaf
