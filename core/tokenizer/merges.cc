#include "core/tokenizer/merges.h"

#include <algorithm>
#include <array>
#include <bit>
#include <utility>

namespace sheaf {
namespace {

constexpr size_t scan_limit = 40;  // symbols up to which scanning for the best pair beats a heap

void merge_by_scan(const Merges& merges, std::vector<TokenId>& symbols) {
  std::array<Merges::Merge, scan_limit> pairs;  // pairs[i]: symbols i and i + 1
  size_t count = symbols.size();
  for (size_t i = 0; i + 1 < count; ++i) pairs[i] = merges.find(symbols[i], symbols[i + 1]);
  while (count > 1) {
    size_t best = 0;
    for (size_t i = 1; i + 1 < count; ++i)
      if (pairs[i].rank < pairs[best].rank) best = i;
    if (pairs[best].rank == Merges::none) break;
    symbols[best] = pairs[best].merged;
    --count;
    for (size_t i = best + 1; i < count; ++i) symbols[i] = symbols[i + 1];
    for (size_t i = best + 1; i + 1 < count; ++i) pairs[i] = pairs[i + 1];
    if (best + 1 < count) pairs[best] = merges.find(symbols[best], symbols[best + 1]);
    if (best > 0) pairs[best - 1] = merges.find(symbols[best - 1], symbols[best]);
  }
  symbols.resize(count);
}

void merge_by_heap(const Merges& merges, std::vector<TokenId>& symbols, MergeScratch& scratch) {
  auto& nodes = scratch.nodes;
  auto& heap = scratch.heap;
  const auto symbol = [&symbols](int32_t i) -> TokenId& { return symbols[static_cast<size_t>(i)]; };
  const auto node = [&nodes](int32_t i) -> MergeScratch::Node& { return nodes[static_cast<size_t>(i)]; };
  const auto later = [](const MergeScratch::Candidate& a, const MergeScratch::Candidate& b) {
    return a.rank != b.rank ? a.rank > b.rank : a.at > b.at;
  };
  const auto count = static_cast<int32_t>(symbols.size());
  nodes.resize(symbols.size());
  heap.clear();
  for (int32_t i = 0; i < count; ++i) node(i) = {i - 1, i + 1 < count ? i + 1 : -1};
  for (int32_t i = 0; i + 1 < count; ++i) {
    const Merges::Merge m = merges.find(symbol(i), symbol(i + 1));
    if (m.rank != Merges::none) heap.push_back({m.rank, i, m.merged});
  }
  std::make_heap(heap.begin(), heap.end(), later);
  const auto push = [&](int32_t at) {
    const Merges::Merge m = merges.find(symbol(at), symbol(node(at).after));
    if (m.rank == Merges::none) return;
    heap.push_back({m.rank, at, m.merged});
    std::push_heap(heap.begin(), heap.end(), later);
  };
  while (!heap.empty()) {
    const MergeScratch::Candidate top = heap.front();
    std::pop_heap(heap.begin(), heap.end(), later);
    heap.pop_back();
    // Stale where either side has merged since; a symbol that was swallowed is -1.
    if (symbol(top.at) < 0 || node(top.at).after < 0) continue;
    const int32_t right = node(top.at).after;
    const Merges::Merge now = merges.find(symbol(top.at), symbol(right));
    if (now.rank != top.rank || now.merged != top.merged) continue;
    symbol(top.at) = top.merged;
    symbol(right) = -1;
    const int32_t after = node(right).after;
    node(top.at).after = after;
    if (after >= 0) {
      node(after).before = top.at;
      push(top.at);
    }
    if (node(top.at).before >= 0) push(node(top.at).before);
  }
  std::erase(symbols, -1);
}

}  // namespace

void Merges::reserve(size_t merges) {
  size_t slots = 2;
  while (slots < merges * 2) slots *= 2;
  if (slots <= slots_.size()) return;
  std::vector<Slot> before(slots);
  std::swap(before, slots_);
  mask_ = slots - 1;
  shift_ = 32 - std::countr_zero(slots);
  for (const Slot& old : before) {
    if (old.key == free_key) continue;
    size_t slot = slot_of(old.key);
    while (slots_[slot].key != free_key) slot = (slot + 1) & mask_;
    slots_[slot] = old;
  }
}

void Merges::add(TokenId left, TokenId right, uint32_t rank, TokenId merged) {
  if ((used_ + 1) * 2 > slots_.size()) reserve(slots_.size());
  const uint64_t key = key_of(left, right);
  size_t slot = slot_of(key);
  while (slots_[slot].key != free_key && slots_[slot].key != key) slot = (slot + 1) & mask_;
  if (slots_[slot].key == free_key) ++used_;
  slots_[slot] = {key, {rank, merged}};
}

void merge_all(const Merges& merges, std::vector<TokenId>& symbols, MergeScratch& scratch) {
  if (symbols.size() <= scan_limit)
    merge_by_scan(merges, symbols);
  else
    merge_by_heap(merges, symbols, scratch);
}

}  // namespace sheaf
