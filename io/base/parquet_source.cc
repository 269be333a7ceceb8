#include <arrow/type.h>
#include <arrow/util/key_value_metadata.h>
#include <fcntl.h>
#include <parquet/arrow/reader.h>
#include <parquet/arrow/schema.h>
#include <parquet/file_reader.h>
#include <parquet/metadata.h>
#include <parquet/properties.h>

#include "core/base/error.h"
#include "io/base/descriptor.h"
#include "io/base/foreign_files.h"
#include "io/base/store.h"
#include "io/base/table_source.h"

namespace sheaf {
namespace {

/// Says what a file is instead where its first bytes tell.
void check_begins_as_parquet(const std::string& path) {
  const Descriptor file = open_regular(path, O_RDONLY);
  if (file.number() < 0) refuse_unopened(path);
  std::string first(4096, '\0');
  first.resize(
      static_cast<size_t>(std::max<int64_t>(0, read_at(file.number(), 0, first.data(), std::ssize(first)))));
  if (const std::string other = describe_no_parquet(path, first); !other.empty())
    refuse("{}: {}", path, other);
}

void collect_leaves(const parquet::arrow::SchemaField& field, std::vector<int>& leaves) {
  if (field.column_index >= 0) leaves.push_back(field.column_index);
  for (const auto& child : field.children) collect_leaves(child, leaves);
}

class ParquetSource : public TableSource {
 public:
  const char* name() const override { return "Parquet"; }

  void open(const std::string& path) override {
    parquet::ReaderProperties properties(&pool_);
    properties.enable_buffered_stream();
    properties.set_page_checksum_verification(true);
    parquet::ArrowReaderProperties arrow_properties(/*use_threads=*/false);
    arrow_properties.set_batch_size(kBatchRows);
    arrow_properties.set_pre_buffer(false);
    parquet::arrow::FileReaderBuilder builder;
    if (!is_uri(path)) check_begins_as_parquet(path);
    check_source(is_uri(path) ? builder.Open(open_store_file(path), properties)
                              : builder.OpenFile(path, false, properties));
    file_ = check_source(builder.memory_pool(&pool_)->properties(arrow_properties)->Build());
  }

  std::shared_ptr<arrow::Schema> schema() const override {
    arrow::FieldVector fields;
    for (const auto& field : file_->manifest().schema_fields) fields.push_back(field.field);
    return arrow::schema(fields);
  }

  std::string about() const override {
    const auto kept = file_->parquet_reader()->metadata()->key_value_metadata();
    return kept ? kept->Get("sheaf").ValueOr("") : std::string();
  }

  std::vector<int64_t> group_rows() const override {
    const auto metadata = file_->parquet_reader()->metadata();
    std::vector<int64_t> rows;
    for (int i = 0; i < metadata->num_row_groups(); ++i) rows.push_back(metadata->RowGroup(i)->num_rows());
    return rows;
  }

  void select(const std::vector<int>& columns) override {
    for (const int column : columns)
      collect_leaves(file_->manifest().schema_fields[static_cast<size_t>(column)], leaves_);
  }

  std::unique_ptr<arrow::RecordBatchReader> open_group(size_t group) override {
    return check_source(file_->GetRecordBatchReader({static_cast<int>(group)}, leaves_));
  }

 private:
  std::unique_ptr<parquet::arrow::FileReader> file_;
  std::vector<int> leaves_;
};

}  // namespace

std::unique_ptr<TableSource> parquet_source() {
  return std::make_unique<ParquetSource>();
}

}  // namespace sheaf
