#pragma once
#include <algorithm>
#include <cmath>
#include <deque>
#include <future>
#include <gtest/gtest.h>
#include <string>
#include <tuple>
#include <vector>

#include "core/base/error.h"
#include "core/engine/backend.h"

namespace sheaf::test {

enum class When { at_finish, on_a_thread };

/// Takes several steps at once over another backend, and checks what the engine owes to those in flight:
/// their batches stay as they are, their keys are written by then, and no later step writes over them.
class Delayed : public Backend {
 public:
  Delayed(Backend& inner, int32_t at_once, When when) : inner_(inner), at_once_(at_once), when_(when) {}
  ~Delayed() override { EXPECT_TRUE(steps_.empty()) << "the engine left a step in flight"; }

  const ModelConfig& config() const override { return inner_.config(); }
  std::string describe() const override { return "delayed"; }
  void allocate_kv(int32_t pages, int32_t page_size) override {
    page_size_ = page_size;
    written_.assign(static_cast<size_t>(pages * page_size), false);
    inner_.allocate_kv(pages, page_size);
  }
  int64_t kv_bytes_per_token() const override { return inner_.kv_bytes_per_token(); }
  std::string kv_kind() const override { return inner_.kv_kind(); }
  int64_t kv_slot_bytes(KvForm form) const override { return inner_.kv_slot_bytes(form); }
  void read_kv(std::span<const int32_t> slots, std::span<std::byte> to, KvForm form) override {
    for (const int32_t slot : slots) EXPECT_TRUE(written_[static_cast<size_t>(slot)]);
    if (last_.valid()) last_.wait();  // one thread at a time inside
    inner_.read_kv(slots, to, form);
  }
  void write_kv(std::span<const int32_t> slots, std::span<const std::byte> from, KvForm form) override {
    for (const int32_t slot : slots) {
      written_[static_cast<size_t>(slot)] = true;
      for (const Step& step : steps_)
        EXPECT_FALSE(std::binary_search(step.read.begin(), step.read.end(), slot))
            << "slot " << slot << " is filled from the store while a step in flight reads it";
    }
    if (last_.valid()) last_.wait();
    inner_.write_kv(slots, from, form);
  }
  int32_t preferred_tokens() const override { return inner_.preferred_tokens(); }
  int32_t steps_at_once() const override { return at_once_; }
  void step(const StepBatch& batch, std::span<Picked> picked, std::span<float>) override {
    ASSERT_TRUE(steps_.empty());
    start(batch, picked);
    finish();
  }

  void start(const StepBatch& batch, std::span<Picked> picked) override {
    ASSERT_LT(steps_.size(), static_cast<size_t>(at_once_));
    ASSERT_GT(batch.rows(), 0);
    ++started;
    overlapped += !steps_.empty();
    for (int32_t slot : batch.kv_slots) {
      written_[static_cast<size_t>(slot)] = true;
      for (const Step& step : steps_)
        EXPECT_FALSE(std::binary_search(step.read.begin(), step.read.end(), slot))
            << "slot " << slot << " is written over while a step in flight reads it";
    }
    Step& step = steps_.emplace_back(Step{&batch, batch, picked, slots_read(batch), {}});
    for (int32_t slot : step.read)
      EXPECT_TRUE(written_[static_cast<size_t>(slot)]) << "slot " << slot << " is read before it is written";
    std::fill(picked.begin(), picked.end(), Picked{-1, NAN});
    if (when_ == When::on_a_thread) {
      const std::shared_future<void> before = last_;
      last_ = std::async(std::launch::async, [this, before, &batch, picked] {
                if (before.valid()) before.wait();
                inner_.step(batch, picked);
              }).share();
      step.ready = last_;
    }
  }

  void finish() override {
    ASSERT_FALSE(steps_.empty());
    const Step step = std::move(steps_.front());
    steps_.pop_front();
    EXPECT_TRUE(same(*step.batch, step.copy)) << "a batch changed in flight";
    if (step.ready.valid()) step.ready.wait();
    if (fail_after == started) fail("the device is gone");
    if (when_ == When::at_finish)
      inner_.step(*step.batch, step.picked);
    else
      step.ready.get();
  }

  int64_t started = 0, overlapped = 0;
  int64_t fail_after = -1;

 private:
  struct Step {
    const StepBatch* batch;
    StepBatch copy;
    std::span<Picked> picked;
    std::vector<int32_t> read;  ///< slots of the pool, sorted
    std::shared_future<void> ready;
  };

  std::vector<int32_t> slots_read(const StepBatch& batch) const {
    std::vector<int32_t> slots;
    for (const AttentionTile& tile : batch.tiles) {
      int32_t keys = 0;
      for (int32_t i = 0; i < tile.row_count; ++i)
        keys = std::max(keys, batch.tile_rows[static_cast<size_t>(tile.first_row + i)].visible);
      const int32_t first_page = batch.spans[static_cast<size_t>(tile.span)].first_page;
      for (int32_t key = 0; key < keys; ++key)
        slots.push_back(batch.pages[static_cast<size_t>(first_page + key / page_size_)] * page_size_ +
                        key % page_size_);
    }
    std::sort(slots.begin(), slots.end());
    return slots;
  }
  static bool same(const StepBatch& a, const StepBatch& b) {
    auto equal = [](const auto& x, const auto& y, auto fields) {
      return std::equal(x.begin(), x.end(), y.begin(), y.end(),
                        [&](const auto& i, const auto& j) { return fields(i) == fields(j); });
    };
    return a.tokens == b.tokens && a.positions == b.positions && a.kv_slots == b.kv_slots &&
           a.pages == b.pages && a.allowed == b.allowed &&
           equal(a.spans, b.spans,
                 [](const KeySpan& s) { return std::tuple(s.first_page, s.keys, s.position); }) &&
           equal(a.tile_rows, b.tile_rows, [](const TileRow& r) { return std::pair(r.row, r.visible); }) &&
           equal(a.tiles, b.tiles,
                 [](const AttentionTile& t) { return std::tuple(t.span, t.first_row, t.row_count); }) &&
           equal(a.picks, b.picks, [](const Pick& p) {
             return std::tuple(p.row, p.uniform, p.first_allowed, p.allowed_count);
           });
  }

  Backend& inner_;
  int32_t at_once_;
  When when_;
  int32_t page_size_ = 0;
  std::vector<bool> written_;
  std::deque<Step> steps_;
  std::shared_future<void> last_;
};

}  // namespace sheaf::test
