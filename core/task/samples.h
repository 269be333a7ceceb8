#pragma once
#include "core/task/task.h"

namespace sheaf {

/// Asks each question of a task several times, all samples behind one prompt, and makes one row of what the
/// samples say: as many as method.samples or, in a dialog, as its request wants.
class SampledTask final : public Task {
 public:
  /// `make`: the task of one sample, by the job that it is given, which outlives it.
  SampledTask(const Job& job, const std::function<std::unique_ptr<Task>(const Job&)>& make);

  std::string bin_name(const Record& record) const override { return task_->bin_name(record); }
  RecordParts parts(const Record& record) override;
  std::vector<std::string> notices() const override { return task_->notices(); }
  std::vector<WantedAnswer> wanted(const Record& record, const nlohmann::json& gold) const override;
  Row row(const Record& record, const std::vector<Answer>& answers) const override;

 private:
  std::shared_ptr<const BinParts> repeated(const std::shared_ptr<const BinParts>& bin, int32_t samples);

  Job job_;
  bool votes_;
  std::unique_ptr<Task> task_;
  struct Bin {
    std::shared_ptr<const BinParts> once;  ///< kept, so that its address stays its own
    std::shared_ptr<const BinParts> repeated;
  };
  std::map<std::pair<const BinParts*, int32_t>, Bin> bins_;
};

/// How many answers are drawn to each question of a record.
int32_t samples_of(const Job& job, const Record& record);

/// Whether the rows of a job have the most frequent of several samples.
bool votes(const Job& job);

/// The most frequent value of each answer of the rows, the earliest one on a tie, with its share as
/// confidence.
RowContent vote(std::vector<RowContent> samples);

}  // namespace sheaf
