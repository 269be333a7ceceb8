#include "io/run_folder/row_stream.h"

#include "io/run_folder/row_line.h"

namespace sheaf {

void RowStream::open(const std::vector<RowColumn>& columns) {
  writer_ = write_streamed_rows(columns, target_);
}

void RowStream::row(const Row& row) {
  writer_->add(row, static_cast<int64_t>(row_line(row).size()));
  ++group_rows_;
}

void RowStream::reject(const Reject& reject) {
  group_rejects_ += reject.records;
}

void RowStream::commit(int64_t position, bool /*may_end*/) {
  if (group_rows_ > 0) {
    writer_->end_group();
    target_.sync();
  }
  position_ = position;
  rows_ += std::exchange(group_rows_, 0);
  rejects_ += std::exchange(group_rejects_, 0);
}

void RowStream::close() {
  writer_->close();
  target_.sync();
}

}  // namespace sheaf
