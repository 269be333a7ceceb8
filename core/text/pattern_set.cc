#include "core/text/pattern_set.h"

#include <algorithm>
#include <numeric>

#include "core/base/error.h"

namespace sheaf {

int32_t PatternSet::add(std::string_view pattern) {
  uint32_t node = 0;
  for (size_t i = pattern.size(); i-- > 0;) {
    const auto fresh = static_cast<uint32_t>(nodes_.size());
    const auto [it, added] = edges_.try_emplace(edge(node, pattern[i]), fresh);
    if (added) nodes_.push_back({.parent = node, .depth = nodes_[node].depth + 1, .byte = pattern[i]});
    node = it->second;
  }
  if (node == 0) fail("an empty pattern to search for");
  last_[static_cast<unsigned char>(pattern.back())] = true;
  longest_ = std::max(longest_, pattern.size());
  linked_ = false;
  if (nodes_[node].pattern < 0) nodes_[node].pattern = count_++;
  return nodes_[node].pattern;
}

void PatternSet::link() {
  std::vector<uint32_t> order(nodes_.size() - 1);
  std::iota(order.begin(), order.end(), uint32_t{1});
  std::ranges::stable_sort(order, {}, [&](uint32_t node) { return nodes_[node].depth; });
  for (const uint32_t id : order) {
    Node& node = nodes_[id];
    node.fallback = node.parent == 0 ? 0 : next(nodes_[node.parent].fallback, node.byte);
    node.longest = node.pattern >= 0 ? node.pattern : nodes_[node.fallback].longest;
  }
  linked_ = true;
}

uint32_t PatternSet::next(uint32_t node, char byte) const {
  while (true) {
    const auto it = edges_.find(edge(node, byte));
    if (it != edges_.end()) return it->second;
    if (node == 0) return 0;
    node = nodes_[node].fallback;
  }
}

int32_t PatternSet::find(std::string_view pattern) const {
  uint32_t node = 0;
  for (size_t i = pattern.size(); i-- > 0;) {
    const auto it = edges_.find(edge(node, pattern[i]));
    if (it == edges_.end()) return -1;
    node = it->second;
  }
  return nodes_[node].pattern;
}

void PatternSet::search(std::string_view text, size_t begin, size_t end, size_t limit,
                        std::vector<Match>& out) const {
  if (!linked_) fail("a search for patterns that were not linked");
  out.clear();
  if (count_ == 0) return;
  uint32_t node = 0;
  for (size_t at = std::min(limit, end + longest_); at-- > begin;) {
    if (node == 0 && !last_[static_cast<unsigned char>(text[at])]) continue;
    node = next(node, text[at]);
    if (at < end && nodes_[node].longest >= 0) out.push_back({at, nodes_[node].longest});
  }
}

}  // namespace sheaf
