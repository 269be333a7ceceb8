#pragma once
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/task/task.h"

namespace sheaf {

/// The sure values of a finished run, usually of a smaller model: a job takes those whose confidence reaches
/// its threshold and decodes the others (task.trust, docs/confidence.md).
class TrustedRun {
 public:
  /// Reads the rows of the run that the job trusts. Refuses a run that is not finished, has no confidence, or
  /// has read another corpus or schema.
  TrustedRun(const Job& job, const Schema& schema);

  /// The least confidence of a value and of a null that is taken.
  double values_at_least() const { return values_at_least_; }
  double nulls_at_least() const { return nulls_at_least_; }
  /// "out/small: 812 of 1,204 answers are taken: …", for the user.
  std::string notice() const;

  /// Which attributes of the record's category are taken; empty: none.
  std::vector<bool> taken(const Record& record) const;
  /// Puts the values that are taken into the record's row. `sources`: each value says which model it is of.
  void fill(const Record& record, bool confidence, bool sources, Row& row) const;

 private:
  using Values = std::unordered_map<std::string, RowAnswer>;  ///< by attribute

  const Values* find(const Record& record) const;

  const Schema& schema_;
  std::string run_;
  std::string model_, own_model_;  ///< names for the rows
  double values_at_least_ = 0, nulls_at_least_ = 0;
  int64_t answers_ = 0, taken_ = 0, repeated_ = 0;
  std::unordered_map<std::string, Values> by_id_;
};

/// The task without the questions whose answers are taken.
std::unique_ptr<Task> make_trusting_task(std::unique_ptr<Task> task, const TrustedRun& trusted);

}  // namespace sheaf
