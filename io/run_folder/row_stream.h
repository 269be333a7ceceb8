#pragma once
#include "io/run_folder/row_sink.h"
#include "io/run_folder/table_rows.h"

namespace sheaf {

/// Rows that go to a stream of Arrow's IPC format and nowhere else: columns are typed as in Parquet, and a
/// batch is written for each group.
class RowStream : public RowSink {
 public:
  /// `target` must outlive the stream.
  explicit RowStream(OutputFile& target) : target_(target) {}

  /// Writes the schema of the rows; before the first row.
  void open(const std::vector<RowColumn>& columns);
  void row(const Row& row) override;
  void reject(const Reject& reject) override;
  void commit(int64_t position, bool may_end) override;
  int64_t position() const override { return position_; }
  int64_t rows() const override { return rows_; }
  int64_t rejects() const override { return rejects_; }
  /// Writes the mark of the stream's end, without which it was broken off.
  void close();

 private:
  OutputFile& target_;
  std::unique_ptr<RowsWriter> writer_;
  int64_t position_ = 0, rows_ = 0, rejects_ = 0;
  int64_t group_rows_ = 0, group_rejects_ = 0;  // of the group being filled
};

}  // namespace sheaf
