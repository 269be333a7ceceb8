#include "cuda/step.h"

#include <cmath>

namespace sheaf::cuda {

void Step::pack(const AttentionPlanner& planner, std::span<const int32_t> windows) {
  plans.resize(windows.size());
  for (size_t i = 0; i < windows.size(); ++i) planner(*batch, windows[i], plans[i]);
  staging.clear();
  places_.clear();
  arrays.attention.assign(windows.size(), {});
  arrays.documents.assign(windows.size(), {});
  pack(batch->tokens, arrays.tokens);
  pack(batch->positions, arrays.positions);
  pack(batch->kv_slots, arrays.kv_slots);
  // Up to here places depend on the number of rows alone, so that a graph finds the slots and this again.
  attention_at_ = staging.add(std::span<const AttentionInputs>(arrays.attention));  // place() changes it
  for (size_t i = 0; i < windows.size(); ++i) {
    const AttentionPlan& plan = plans[i];
    AttentionInputs& attention = arrays.attention[i];
    pack(plan.items, attention.items);
    pack(plan.document_items, arrays.documents[i].items);
    pack(plan.rows, attention.rows);
    pack(plan.pages, attention.pages);
    if (plan.window > 0) pack(plan.page_positions, attention.page_positions);
    pack(plan.merged_rows, attention.merged_rows);
    pack(plan.partial_begin, attention.partial_begin);
    pack(plan.partials, attention.partials);
  }
  pack(batch->copies, arrays.attention.front().copies);
  pack(batch->pages, arrays.attention.front().seen_pages);
  pack_picks();
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
  pack(chain_picks_, arrays.chains);
  pack(chain_groups, arrays.groups);
  pack(picked_rows_, arrays.pick_rows);
  pack(greedy_picks_, arrays.greedy);
  pack(batch->allowed, arrays.allowed);
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
  for (const auto& place : places_) place(device);
  arrays.attention_on_device = reinterpret_cast<const AttentionInputs*>(device + attention_at_);
  for (size_t i = 0; i < plans.size(); ++i) {
    const AttentionPlan& plan = plans[i];
    AttentionInputs& attention = arrays.attention[i];
    attention.small_items = plan.small_items;
    attention.large_items = static_cast<int32_t>(plan.items.size()) - plan.small_items;
    attention.page_size = page_size;
    attention.merged_count = static_cast<int32_t>(plan.merged_rows.size());
    attention.partial_rows = plan.partial_rows;
    attention.in_order = in_order;
    attention.copies = arrays.attention.front().copies;
    attention.copy_count = static_cast<int32_t>(batch->copies.size());
    attention.seen_pages = arrays.attention.front().seen_pages;
    attention.seen_count = static_cast<int32_t>(batch->pages.size());
    attention.window = plan.window;
    attention.row_positions = arrays.positions;
    DocumentBlocks& documents = arrays.documents[i];
    documents.small_items = plan.small_document_items;
    documents.large_items = static_cast<int32_t>(plan.document_items.size()) - plan.small_document_items;
    documents.first_partial = plan.first_document_partial;
    documents.temperature = batch->document_softmax.temperature;
    documents.scale = batch->document_softmax.scale;
    staging.put(attention_at_ + static_cast<int64_t>(i * sizeof(AttentionInputs)), attention);
  }
}

int64_t Step::partial_rows() const {
  int64_t most = 0;
  for (const AttentionPlan& plan : plans) most = std::max<int64_t>(most, plan.partial_rows);
  return most;
}

uint64_t Step::attention_kinds() const {
  uint64_t kinds = 1;
  for (const AttentionInputs& attention : arrays.attention)
    for (const bool some : {attention.small_items > 0, attention.large_items > 0, attention.merged_count > 0})
      kinds = kinds * 2 + (some ? 1 : 0);
  return kinds;
}

void Step::hand_back() const {
  const std::vector<Pick>& picks = batch->picks;
  for (size_t i = 0; i < picks.size(); ++i) {
    const GreedyResult& result = chosen.data()[i];
    const bool chains = picks[i].chains > 0;
    if (!on_host(picks[i])) {
      picked[i] = {result.token, result.logprob, chains ? result.contrast : 0.0f, chains ? result.voice : 0};
      if (picks[i].rivals) {
        picked[i].second = result.second;
        picked[i].watched = result.watched;
      }
    }
    for (int32_t k = picks[i].chains; k > 0; --k) picked[++i] = {};
  }
}

}  // namespace sheaf::cuda
