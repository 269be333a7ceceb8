#pragma once

#include "core/job/job.h"
#include "core/task/record.h"
#include "io/answers/key_table.h"

namespace sheaf {

/// A corpus that knows which of its records, or of their questions, have the id of an earlier one. Its memory
/// does not grow with the corpus: what it knows of the ids is a table of 24 bytes for each, in a file where
/// it is large.
class RepeatedIds : public Corpus {
 public:
  /// `refuse`: such records are rejects. Then a run that begins in the midst of the corpus reads what comes
  /// before, so that it has the rejects of a run in one go; otherwise only what is read counts.
  /// `has_ids`: records have ids of their own, and are not just numbered.
  RepeatedIds(std::unique_ptr<Corpus> all, bool has_ids, DuplicateIds what, const std::string& near)
      : all_(std::move(all)), has_ids_(has_ids), refuse_(what == DuplicateIds::refuse), seen_(near) {}

  std::optional<std::variant<Record, Reject>> next() override;
  int64_t position() const override { return all_->position(); }
  void skip_to(int64_t position) override;
  int64_t count_records(int64_t most) override { return all_->count_records(most); }
  bool is_read_once() const override { return all_->is_read_once(); }
  std::optional<double> share_read() const override { return all_->share_read(); }
  std::optional<int64_t> records_expected() const override { return all_->records_expected(); }

  /// Puts itself in the place of a corpus whose records or questions have ids, as the job says; null where
  /// they have none.
  static const RepeatedIds* watch(const Job& job, std::unique_ptr<Corpus>& corpus);

  /// How many records were kept that have the id of an earlier one, with the first of them; empty: none.
  std::string notice() const;

 private:
  /// The first record with the id, where that is an earlier one.
  std::optional<int64_t> first_with(const std::string& id);

  std::unique_ptr<Corpus> all_;
  bool has_ids_, refuse_;
  KeyTable seen_;  ///< the number of the first record with an id
  int64_t repeated_ = 0;
  std::vector<std::string> examples_;
};

}  // namespace sheaf
