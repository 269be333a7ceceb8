#include <algorithm>
#include <cstddef>

#include "core/backend/footprint.h"
#include "core/estimate/device_profile.h"

namespace sheaf {
namespace {

class ProbeBatch {
 public:
  explicit ProbeBatch(int32_t page_size) : page_size_(page_size) {}

  void add(const ProbePart& part) {
    for (int32_t group = 0; group < part.groups; ++group) {
      const int32_t first = batch_.rows(), count = part.runs * part.rows;
      if (part.trunk > 0) {
        add_tile(part.trunk, count, 0);
        for (int32_t i = 0; i < count; ++i) batch_.tile_rows.push_back({first + i, part.trunk});
      }
      for (int32_t run = 0; run < part.runs; ++run) add_run(part);
    }
  }

  StepBatch take(int32_t picks) {
    const size_t kept = std::min(ends_.size(), static_cast<size_t>(picks));
    for (size_t i = ends_.size() - kept; i < ends_.size(); ++i) batch_.picks.push_back(Pick{.row = ends_[i]});
    return std::move(batch_);
  }

  void mark_decode_tokens() { batch_.decode_tokens = batch_.rows(); }

 private:
  void add_tile(int32_t keys, int32_t rows, int32_t position) {
    batch_.tiles.push_back(
        {static_cast<int32_t>(batch_.spans.size()), static_cast<int32_t>(batch_.tile_rows.size()), rows});
    batch_.spans.push_back({static_cast<int32_t>(batch_.pages.size()), keys, position});
    for (int64_t i = 0; i < pages_for(keys, page_size_); ++i) batch_.pages.push_back(next_page_++);
  }

  void add_run(const ProbePart& part) {
    add_tile(part.own + part.rows, part.rows, part.trunk);
    const auto first_page = static_cast<size_t>(batch_.spans.back().first_page);
    for (int32_t i = 0; i < part.rows; ++i) {
      const int32_t key = part.own + i, row = batch_.rows();
      batch_.tile_rows.push_back({row, key + 1});
      batch_.tokens.push_back(row % 100);
      batch_.positions.push_back(part.trunk + key);
      const int32_t page = batch_.pages[first_page + static_cast<size_t>(key / page_size_)];
      batch_.kv_slots.push_back(page * page_size_ + key % page_size_);
    }
    ends_.push_back(batch_.rows() - 1);
  }

  int32_t page_size_;
  int32_t next_page_ = 0;
  StepBatch batch_;
  std::vector<int32_t> ends_;  ///< the last row of every run
};

/// Collects probes.
class Probes {
 public:
  void bare(std::initializer_list<int32_t> rows, int32_t most_picks) {
    for (const int32_t count : rows) add(ProbeKind::bare, {{1, 0, count, 0, 1}}, most_picks);
  }
  /// Prompts of so many tokens, `rows` in all.
  void prefill(std::initializer_list<int32_t> tokens, int32_t rows) {
    for (const int32_t each : tokens) attention({{std::max(1, rows / each), 0, 1, 0, each}});
  }
  void attention(std::initializer_list<ProbePart> each) {
    for (const ProbePart& part : each) add(ProbeKind::attention, {part}, 16);
  }
  void held_out(std::initializer_list<std::vector<ProbePart>> each) {
    for (const std::vector<ProbePart>& parts : each) add(ProbeKind::held_out, parts, INT32_MAX);
  }
  ProbeList take() { return std::move(list_); }

 private:
  void add(ProbeKind kind, std::vector<ProbePart> parts, int32_t most_picks) {
    int32_t picks = 0;
    for (const ProbePart& part : parts) picks += part.groups * part.runs;
    picks = std::min(picks, most_picks);
    list_.push_back({kind, {std::move(parts), picks}});
  }
  ProbeList list_;
};

}  // namespace

int64_t Probe::rows() const {
  int64_t rows = 0;
  for (const ProbePart& part : parts) rows += part.total_rows();
  return rows;
}

int64_t Probe::pages(int32_t page_size) const {
  int64_t pages = 0;
  for (const ProbePart& part : parts)
    pages += part.groups * (pages_for(part.trunk, page_size) +
                            part.runs * pages_for(int64_t{part.own} + part.rows, page_size));
  return pages;
}

StepBatch make_probe_batch(const Probe& probe, int32_t page_size) {
  ProbeBatch batch(page_size);
  bool decoding = true;
  for (const ProbePart& part : probe.parts) {
    if (decoding && part.rows > 1) {
      batch.mark_decode_tokens();
      decoding = false;
    }
    batch.add(part);
  }
  if (decoding) batch.mark_decode_tokens();
  return batch.take(probe.picks);
}

ProbeList probes_for_gpu() {
  Probes list;
  list.bare({1,   2,   4,   8,    16,   32,   48,   64,   96,   128,  192,   256,
             384, 512, 768, 1024, 1536, 2048, 3072, 4096, 6144, 8192, 12288, 16384},
            4096);
  list.prefill({32, 64, 128, 256, 512, 1024, 2048, 4096, 8192}, 8192);
  list.prefill({128, 512, 2048}, 2048);
  list.prefill({128, 512}, 512);
  list.prefill({16384}, 16384);
  // Questions behind documents, documents behind an instruction, the second half of a long prompt.
  list.attention({{60, 225, 9, 0, 13},
                  {20, 400, 4, 0, 40},
                  {8, 3500, 30, 0, 12},
                  {5, 11800, 20, 0, 72},
                  {40, 50, 1, 0, 180},
                  {8, 2754, 1, 0, 737},
                  {1, 0, 1, 8192, 8192},
                  {300, 100, 12, 0, 2}});
  // Decoding: nothing shared, all shared, some shared.
  for (const int32_t own : {64, 256, 1024, 4096})
    for (const int32_t rows : {1, 16, 64, 256, 1024})
      if (int64_t{own} * rows <= 300000) list.attention({{1, 0, rows, own, 1}});
  for (const int32_t trunk : {256, 1024, 4096, 16384})
    for (const int32_t rows : {16, 64, 256, 1024, 4096}) list.attention({{1, trunk, rows, 16, 1}});
  list.attention({{16, 225, 9, 14, 1},
                  {64, 225, 9, 14, 1},
                  {256, 225, 9, 14, 1},
                  {64, 1024, 4, 16, 1},
                  {16, 3500, 30, 14, 1},
                  {256, 100, 12, 3, 1}});
  list.held_out({{{120, 225, 9, 14, 1}, {20, 0, 1, 0, 225}, {20, 225, 9, 0, 13}},
                 {{16, 3491, 30, 14, 1}, {4, 2754, 1, 0, 737}, {4, 3491, 30, 0, 12}},
                 {{300, 100, 12, 3, 1}, {40, 70, 1, 0, 31}, {40, 100, 12, 0, 6}},
                 {{1, 11793, 20, 0, 72}, {1, 73, 1, 4096, 5000}},
                 {{200, 384, 4, 40, 1}, {16, 40, 1, 0, 344}, {16, 384, 4, 0, 40}},
                 {{50, 225, 9, 14, 1}}});
  return list.take();
}

ProbeList probes_for_cpu() {
  Probes list;
  list.bare({1, 2, 4, 8, 16, 32, 64, 128, 256, 512}, 128);
  list.prefill({32, 128, 512}, 512);
  list.prefill({1024}, 1024);
  list.attention({{1, 0, 1, 256, 1},
                  {1, 0, 16, 256, 1},
                  {1, 0, 128, 256, 1},
                  {1, 0, 16, 2048, 1},
                  {1, 1024, 16, 16, 1},
                  {1, 1024, 128, 16, 1},
                  {1, 4096, 64, 16, 1},
                  {8, 225, 9, 14, 1},
                  {4, 225, 9, 0, 13},
                  {1, 2048, 1, 0, 128}});
  list.held_out({{{4, 225, 9, 14, 1}, {1, 0, 1, 0, 92}},
                 {{5, 100, 12, 3, 1}, {1, 70, 1, 0, 31}, {1, 100, 12, 0, 3}},
                 {{6, 300, 5, 8, 1}, {1, 300, 5, 0, 13}}});
  return list.take();
}

}  // namespace sheaf
