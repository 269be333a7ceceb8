// What a backend that adds up page by page relies on.
#include <gtest/gtest.h>

#include "cpu/cpu_backend.h"
#include "tests/engine/decode.h"
#include "tests/random_model.h"

namespace sheaf {
namespace {

/// Knows the position of the key in every slot, and looks where each row finds its keys.
class WatchedBackend final : public Backend {
 public:
  WatchedBackend(const Model& model, bool in_order)
      : inner_(make_quick_backend(model, 1)), in_order_(in_order) {}

  const ModelConfig& config() const override { return inner_->config(); }
  std::string describe() const override { return inner_->describe(); }
  int64_t kv_bytes_per_token() const override { return inner_->kv_bytes_per_token(); }
  int32_t preferred_tokens() const override { return inner_->preferred_tokens(); }
  void allocate_kv(int32_t pages, int32_t page_size) override {
    inner_->allocate_kv(pages, page_size);
    page_size_ = page_size;
    position_.assign(static_cast<size_t>(pages * page_size), -1);
  }
  void step(const StepBatch& batch, std::span<Picked> picked, std::span<float> logits) override {
    for (size_t i = 0; i < batch.kv_slots.size(); ++i)
      position_[static_cast<size_t>(batch.kv_slots[i])] = batch.positions[i];
    for (const KeyCopy& copy : batch.copies)
      position_[static_cast<size_t>(copy.to)] = position_[static_cast<size_t>(copy.from)];
    copies += static_cast<int64_t>(batch.copies.size());
    std::vector<int32_t> seen(static_cast<size_t>(batch.rows()), 0);
    for (const AttentionTile& tile : batch.tiles)
      for (int32_t i = tile.first_row; i < tile.first_row + tile.row_count; ++i)
        look(batch, tile.span, batch.tile_rows[static_cast<size_t>(i)], seen);
    for (int32_t row = 0; in_order_ && row < batch.rows(); ++row)
      EXPECT_EQ(seen[static_cast<size_t>(row)], batch.positions[static_cast<size_t>(row)] + 1);
    inner_->step(batch, picked, logits);
  }

  int64_t copies = 0;

 private:
  void look(const StepBatch& batch, int32_t span, const TileRow& look, std::vector<int32_t>& seen) const {
    if (!in_order_) return;
    for (int32_t key = 0; key < look.visible; ++key) {
      const int32_t page = batch.pages[static_cast<size_t>(batch.spans[static_cast<size_t>(span)].first_page +
                                                           key / page_size_)];
      const int32_t number = seen[static_cast<size_t>(look.row)]++;
      EXPECT_EQ(key % page_size_, number % page_size_) << "key " << number << " lies elsewhere in its page";
      EXPECT_EQ(position_[static_cast<size_t>(page * page_size_ + key % page_size_)], number);
    }
  }

  std::unique_ptr<Backend> inner_;
  bool in_order_;
  int32_t page_size_ = 0;
  std::vector<int32_t> position_;
};

using Build = void (*)(std::span<const RecordParts>, std::vector<Stack>&);

TEST(WholePages, EveryKeyLiesWhereOneSegmentWouldHaveIt) {
  const Model model = test::make_random_model({}, 5);
  const Build builds[] = {[](auto records, auto& out) { build_separate(records, out); },
                          [](auto records, auto& out) { build_prefix(records, out); },
                          [](auto records, auto& out) { build_tree(records, out); }};
  for (uint32_t seed = 0; seed < 6; ++seed)
    for (size_t kind = 0; kind < std::size(builds); ++kind) {
      const auto records = test::make_random_records(
          {.records = 4, .questions = 4, .max_tokens = 8, .own_questions = seed % 2 == 0, .longest = 30},
          seed);
      std::vector<Stack> stacks;
      builds[kind](records, stacks);
      WatchedBackend backend(model, true);
      test::decode(
          backend, stacks,
          {.tokens_per_step = 5 + static_cast<int32_t>(seed) * 13, .pages = 300, .whole_pages = true});
      EXPECT_EQ(backend.copies > 0, kind > 0);
    }
}

TEST(WholePages, OtherLayoutsAreUnchanged) {
  const Model model = test::make_random_model({}, 6);
  const auto records = test::make_random_records({.records = 3, .questions = 4, .max_tokens = 5}, 6);
  std::vector<Stack> stacks;
  build_positional(records, false, stacks);
  const auto run = [&](bool whole_pages) {
    WatchedBackend backend(model, false);
    const auto answers =
        test::decode(backend, stacks, {.tokens_per_step = 40, .pages = 300, .whole_pages = whole_pages});
    EXPECT_EQ(backend.copies, 0);
    return answers;
  };
  test::expect_same(run(false), run(true), "positional values");
}

}  // namespace
}  // namespace sheaf
