#include "cuda/step.h"

#include <algorithm>
#include <cmath>

namespace sheaf::cuda {

Step::Step() {
  check(cudaEventCreateWithFlags(&done, cudaEventDisableTiming), "making an event");
}

Step::~Step() {
  cudaEventDestroy(done);
}

void Step::pack(AttentionPlanner& planner) {
  planner.plan(*batch, plan);
  staging.clear();
  at_.tokens = staging.add(std::span<const int32_t>(batch->tokens));
  at_.positions = staging.add(std::span<const int32_t>(batch->positions));
  at_.kv_slots = staging.add(std::span<const int32_t>(batch->kv_slots));
  // Up to here places depend on the number of rows alone, so that a graph finds the slots and this again.
  at_.attention = staging.add(std::span<const AttentionInputs>(&arrays.attention, 1));  // place() changes it
  pack_plan();
  pack_picks();
}

void Step::pack_plan() {
  at_.items = staging.add(std::span<const AttentionItem>(plan.items));
  at_.attended = staging.add(std::span<const int32_t>(plan.rows));
  at_.pages = staging.add(std::span<const AttentionPage>(plan.pages));
  at_.merged_rows = staging.add(std::span<const int32_t>(plan.merged_rows));
  at_.partial_begin = staging.add(std::span<const int32_t>(plan.partial_begin));
  at_.partials = staging.add(std::span<const int32_t>(plan.partials));
  static_assert(sizeof(KeyCopy) == sizeof(SlotCopy));
  at_.copies = staging.add(std::span<const KeyCopy>(batch->copies));
  at_.seen_pages = staging.add(std::span<const int32_t>(batch->pages));
}

void Step::pack_picks() {
  picked_rows_.clear();
  greedy_picks_.clear();
  for (const Pick& pick : batch->picks) {
    picked_rows_.push_back(pick.row);
    greedy_picks_.push_back(
        {pick.first_allowed, pick.allowed_count, pick.rivals || pick.watch >= 0, pick.watch, pick.bias});
  }
  list_chains();
  at_.chains = staging.add(std::span<const ChainPick>(chain_picks_));
  at_.groups = staging.add(std::span<const ChainGroup>(chain_groups));
  at_.pick_rows = staging.add(std::span<const int32_t>(picked_rows_));
  at_.greedy = staging.add(std::span<const GreedyPick>(greedy_picks_));
  at_.allowed = staging.add(std::span<const int32_t>(batch->allowed));
}

void Step::list_chains() {
  const std::vector<Pick>& picks = batch->picks;
  chain_groups.clear();
  chain_picks_.clear();
  if (std::none_of(picks.begin(), picks.end(), [](const Pick& pick) { return pick.chains > 0; })) return;
  chain_picks_.assign(picks.size(), {-1, 0, 0, 0, 0});
  for (size_t i = 0; i < picks.size(); ++i) {
    if (picks[i].chains == 0) continue;
    const auto amateur = static_cast<int32_t>(i), group = static_cast<int32_t>(chain_groups.size());
    chain_groups.push_back(
        {amateur, picks[i].chains, picks[i].contrast, static_cast<int32_t>(picks[i].aggregate)});
    double sum = 0, high = -INFINITY;
    const auto chains = std::span(picks).subspan(i + 1, static_cast<size_t>(picks[i].chains));
    for (const Pick& chain : chains) high = std::max(high, static_cast<double>(chain.prior));
    for (const Pick& chain : chains) sum += std::exp(static_cast<double>(chain.prior) - high);
    for (const Pick& chain : chains) {
      ++i;
      chain_picks_[i] = {amateur, group, chain_groups.back().contrast < 0, chain.prior,
                         static_cast<float>(static_cast<double>(chain.prior) - high - std::log(sum))};
      greedy_picks_[i].allowed_count = -1;
    }
  }
}

void Step::place(const std::byte* device, int32_t page_size, bool in_order) {
  const auto at = [device]<class T>(int64_t offset, const T*& pointer) {
    pointer = reinterpret_cast<const T*>(device + offset);
  };
  at(at_.tokens, arrays.tokens);
  at(at_.positions, arrays.positions);
  at(at_.kv_slots, arrays.kv_slots);
  at(at_.attention, arrays.attention_on_device);
  at(at_.pick_rows, arrays.pick_rows);
  at(at_.greedy, arrays.greedy);
  at(at_.allowed, arrays.allowed);
  at(at_.chains, arrays.chains);
  at(at_.groups, arrays.groups);
  AttentionInputs& attention = arrays.attention;
  at(at_.items, attention.items);
  at(at_.attended, attention.rows);
  at(at_.pages, attention.pages);
  at(at_.merged_rows, attention.merged_rows);
  at(at_.partial_begin, attention.partial_begin);
  at(at_.partials, attention.partials);
  attention.small_items = plan.small_items;
  attention.large_items = static_cast<int32_t>(plan.items.size()) - plan.small_items;
  attention.page_size = page_size;
  attention.merged_count = static_cast<int32_t>(plan.merged_rows.size());
  attention.partial_rows = plan.partial_rows;
  attention.in_order = in_order;
  at(at_.copies, attention.copies);
  attention.copy_count = static_cast<int32_t>(batch->copies.size());
  at(at_.seen_pages, attention.seen_pages);
  attention.seen_count = static_cast<int32_t>(batch->pages.size());
  staging.put(at_.attention, attention);
}

void Step::hand_back() const {
  const std::vector<Pick>& picks = batch->picks;
  for (size_t i = 0; i < picks.size(); ++i) {
    const GreedyResult& result = chosen.data()[i];
    const bool chains = picks[i].chains > 0;
    if (!on_host(picks[i])) {
      picked[i] = {result.token, result.logprob, chains ? result.contrast : 0.0f};
      if (picks[i].rivals) {
        picked[i].second = result.second;
        picked[i].watched = result.watched;
      }
    }
    for (int32_t k = picks[i].chains; k > 0; --k) picked[++i] = {};
  }
}

}  // namespace sheaf::cuda
