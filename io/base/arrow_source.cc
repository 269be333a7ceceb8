#include <arrow/io/file.h>
#include <arrow/ipc/reader.h>
#include <arrow/util/key_value_metadata.h>
#include <fcntl.h>

#include "core/base/error.h"
#include "io/base/descriptor.h"
#include "io/base/store.h"
#include "io/base/table_source.h"

namespace sheaf {
namespace {

std::shared_ptr<arrow::io::RandomAccessFile> open_local(const std::string& path) {
  Descriptor file = open_regular(path, O_RDONLY);
  if (file.number() < 0) refuse_unopened(path);
  return check_source(arrow::io::ReadableFile::Open(file.release()));
}

/// The batches of a file, cut small.
class ArrowBatches : public arrow::RecordBatchReader {
 public:
  ArrowBatches(std::shared_ptr<arrow::ipc::RecordBatchFileReader> file, bool no_columns)
      : file_(std::move(file)), no_columns_(no_columns) {}

  std::shared_ptr<arrow::Schema> schema() const override { return file_->schema(); }

  arrow::Status ReadNext(std::shared_ptr<arrow::RecordBatch>* batch) override {
    batch->reset();
    while (!whole_ || at_ == whole_->num_rows()) {
      if (next_ == file_->num_record_batches()) return arrow::Status::OK();
      ARROW_ASSIGN_OR_RAISE(whole_, file_->ReadRecordBatch(next_++));
      // Buffers are taken as they lie in the file: a wrong offset would be read beyond its end.
      ARROW_RETURN_NOT_OK(whole_->ValidateFull());
      if (no_columns_) whole_ = check_source(whole_->SelectColumns({}));
      at_ = 0;
    }
    *batch = whole_->Slice(at_, kBatchRows);
    at_ += (*batch)->num_rows();
    return arrow::Status::OK();
  }

 private:
  std::shared_ptr<arrow::ipc::RecordBatchFileReader> file_;
  bool no_columns_;
  std::shared_ptr<arrow::RecordBatch> whole_;
  int next_ = 0;
  int64_t at_ = 0;
};

class ArrowSource : public TableSource {
 public:
  ArrowSource() {
    options_.memory_pool = &pool_;
    options_.use_threads = false;
  }

  const char* name() const override { return "Arrow"; }

  void open(const std::string& path) override {
    file_ = is_uri(path) ? open_store_file(path) : open_local(path);
    reader_ = check_source(arrow::ipc::RecordBatchFileReader::Open(file_, options_));
    rows_ = check_source(reader_->CountRows());
  }

  std::shared_ptr<arrow::Schema> schema() const override { return reader_->schema(); }

  std::string about() const override {
    const auto kept = reader_->schema()->metadata();
    return kept ? kept->Get("sheaf").ValueOr("") : std::string();
  }

  std::vector<int64_t> group_rows() const override { return {rows_}; }

  void select(const std::vector<int>& columns) override { options_.included_fields = columns; }

  std::unique_ptr<arrow::RecordBatchReader> open_group(size_t) override {
    auto chosen = check_source(arrow::ipc::RecordBatchFileReader::Open(file_, options_));
    return std::make_unique<ArrowBatches>(std::move(chosen), options_.included_fields.empty());
  }

 private:
  arrow::ipc::IpcReadOptions options_ = arrow::ipc::IpcReadOptions::Defaults();
  std::shared_ptr<arrow::io::RandomAccessFile> file_;
  std::shared_ptr<arrow::ipc::RecordBatchFileReader> reader_;
  int64_t rows_ = 0;
};

}  // namespace

std::unique_ptr<TableSource> arrow_source() {
  return std::make_unique<ArrowSource>();
}

}  // namespace sheaf
