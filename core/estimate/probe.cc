#include "core/estimate/probe.h"

#include <algorithm>
#include <cstddef>

#include "core/model/footprint.h"

namespace sheaf {
namespace {

class ProbeBatch {
 public:
  explicit ProbeBatch(int32_t page_size) : page_size_(page_size) {}

  void add(const ProbePart& part) {
    for (int32_t group = 0; group < part.groups; ++group) {
      const int32_t first = batch_.rows(), count = part.runs * part.rows;
      if (part.trunk > 0) {
        add_tile(part.trunk, count);
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
  void add_tile(int32_t keys, int32_t rows) {
    batch_.tiles.push_back(
        {static_cast<int32_t>(batch_.spans.size()), static_cast<int32_t>(batch_.tile_rows.size()), rows});
    batch_.spans.push_back({static_cast<int32_t>(batch_.pages.size()), keys});
    for (int64_t i = 0; i < pages_for(keys, page_size_); ++i) batch_.pages.push_back(next_page_++);
  }

  void add_run(const ProbePart& part) {
    add_tile(part.own + part.rows, part.rows);
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

}  // namespace sheaf
