#pragma once
#include <arrow/memory_pool.h>
#include <arrow/record_batch.h>
#include <memory>
#include <string>
#include <vector>

namespace sheaf {

/// A table's format, as TableFile reads it.
class TableSource {
 public:
  virtual ~TableSource() = default;
  /// The format's name in messages.
  virtual const char* name() const = 0;
  virtual void open(const std::string& path) = 0;
  virtual std::shared_ptr<arrow::Schema> schema() const = 0;
  /// The file's metadata under the key "sheaf".
  virtual std::string about() const = 0;
  /// Rows of each stretch that can be read by itself.
  virtual std::vector<int64_t> group_rows() const = 0;
  /// `columns`: numbers in the schema.
  virtual void select(const std::vector<int>& columns) = 0;
  virtual std::unique_ptr<arrow::RecordBatchReader> open_group(size_t group) = 0;

 protected:
  // Of one file's pages and batches: a hostile page size stops here. Before whatever gives memory back to it.
  static constexpr int64_t kMostMemory = 2LL << 30;
  arrow::CappedMemoryPool pool_{arrow::default_memory_pool(), kMostMemory};

 public:
  std::unique_ptr<arrow::RecordBatchReader> batches;  ///< of the group being read; null before it is opened
};

constexpr int64_t kBatchRows = 64;  // documents may have megabytes each

std::unique_ptr<TableSource> parquet_source();
std::unique_ptr<TableSource> arrow_source();

/// Throws a failure of Arrow's as one short line.
void check_source(const arrow::Status& status);
template <class Value>
Value check_source(arrow::Result<Value> result) {
  check_source(result.status());
  return std::move(result).ValueUnsafe();
}

}  // namespace sheaf
