#include "core/engine/batch_builder.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "core/base/error.h"

namespace sheaf {

void BatchBuilder::begin(StepBatch& batch) {
  batch.clear();
  batch_ = &batch;
  ++batches_;
  looks_.clear();
  runs_.clear();
}

void BatchBuilder::add(const Segment& segment, Resident* own, std::span<Resident* const> residents,
                       int32_t first, std::span<const TokenId> tokens) {
  const int32_t row = batch_->rows();
  const auto count = static_cast<int32_t>(tokens.size());
  batch_->tokens.insert(batch_->tokens.end(), tokens.begin(), tokens.end());
  if (segment.role < Role::question) batch_->shared_rows.push_back({row, count});
  const int32_t lead = own->lead;
  for (int32_t key = lead + first; key < lead + first + count;) {
    const int32_t end = std::min(lead + first + count, (key / page_size_ + 1) * page_size_);
    for (int32_t slot = own->slot(key, page_size_); key < end; ++key, ++slot) {
      batch_->positions.push_back(segment.first_position + key - lead);
      batch_->kv_slots.push_back(slot);
    }
  }
  if (first == 0) add_copies(own);
  for (const Sight& sight : segment.sees) {
    Resident* seen = residents[sight.segment];
    int32_t keys = seen->lead + seen->keys;
    if (own->in_pages) keys -= keys % page_size_;  // the rest is copied
    const bool apart = !sight.softmax.plain();
    if (apart) weigh_documents(sight.softmax);
    if (keys > 0) look(seen, apart, {row, count, sight.abreast ? first + 1 : keys, keys, -1});
  }
  look(own, false, {row, count, lead + first + 1, lead + own->keys, -1});
}

/// The keys before a resident's own in its first page, from where they were computed: a resident that ends in
/// its first page has copies there itself.
void BatchBuilder::add_copies(const Resident* resident) {
  for (int32_t key = 0; key < resident->lead; ++key) {
    const Resident* source = resident->before;
    while (source->lead + source->keys < page_size_ && key < source->lead) source = source->before;
    const int32_t page = (source->lead + source->keys) / page_size_;
    batch_->copies.push_back(
        {source->slot(page * page_size_ + key, page_size_), resident->slot(key, page_size_)});
  }
}

void BatchBuilder::weigh_documents(const DocumentSoftmax& softmax) {
  if (batch_->document_softmax.plain()) batch_->document_softmax = softmax;
  if (batch_->document_softmax != softmax)
    fail("the prompts of a step have different softmaxes of documents");
}

void BatchBuilder::look(Resident* resident, bool apart, Run run) {
  const auto index = static_cast<int32_t>(runs_.size());
  Resident::Looked& looked = resident->looked[apart ? 1 : 0];
  if (looked.batch != batches_) {
    looked = {batches_, looks_.size()};
    looks_.push_back({resident, apart, index, index, 0});
  } else {
    runs_[looks_[looked.place].last_run].next = index;
  }
  Look& look = looks_[looked.place];
  look.last_run = index;
  look.rows += run.count;
  runs_.push_back(run);
}

void BatchBuilder::close() {
  // A row's sights have ascending first positions, so this order is the order of keys for every row.
  std::sort(looks_.begin(), looks_.end(), [](const Look& a, const Look& b) {
    return std::tuple(a.resident->first_position, a.resident->serial, a.apart) <
           std::tuple(b.resident->first_position, b.resident->serial, b.apart);
  });
  const Resident* last = nullptr;
  for (const Look& look : looks_) {
    if (look.resident != std::exchange(last, look.resident)) {
      // Copied keys at its start are those that come right before it.
      batch_->spans.push_back({static_cast<int32_t>(batch_->pages.size()),
                               look.resident->lead + look.resident->keys,
                               look.resident->first_position - look.resident->lead});
      batch_->pages.insert(batch_->pages.end(), look.resident->pages.begin(), look.resident->pages.end());
    }
    batch_->tiles.push_back({static_cast<int32_t>(batch_->spans.size()) - 1,
                             static_cast<int32_t>(batch_->tile_rows.size()), look.rows, look.apart});
    for (int32_t at = look.first_run; at >= 0;) {
      const Run& run = runs_[at];
      for (int32_t i = 0; i < run.count; ++i)
        batch_->tile_rows.push_back({run.row + i, std::min(run.most, run.visible + i)});
      at = run.next;
    }
  }
}

}  // namespace sheaf
