#include "io/base/table_writer.h"

#include <arrow/io/interfaces.h>
#include <arrow/ipc/writer.h>
#include <arrow/record_batch.h>
#include <arrow/table.h>
#include <arrow/table_builder.h>
#include <arrow/util/compression.h>
#include <arrow/util/key_value_metadata.h>
#include <exception>
#include <parquet/arrow/writer.h>

#include "core/text/json_reader.h"
#include "io/base/table_cells.h"

namespace sheaf {

/// What a format makes of the groups of rows.
class TableEncoder {
 public:
  virtual ~TableEncoder() = default;
  virtual void write(const std::shared_ptr<arrow::RecordBatch>& group) = 0;
  virtual void close() = 0;
};

namespace {

using nlohmann::ordered_json;
using Type = TableColumn::Type;

constexpr int64_t kRowsPerGroup = 1 << 16;
constexpr int64_t kBytesPerGroup = 64 << 20;  // raw text may make rows large

std::shared_ptr<arrow::DataType> span_list() {
  return arrow::list(
      arrow::struct_({arrow::field("column", arrow::utf8()), arrow::field("start", arrow::int64()),
                      arrow::field("end", arrow::int64())}));
}

arrow::FieldVector arrow_fields(const std::vector<TableColumn>& columns);

std::shared_ptr<arrow::DataType> arrow_type(const TableColumn& column) {
  switch (column.type) {
    case Type::text:
      return arrow::utf8();
    case Type::integer:
      return arrow::int64();
    case Type::number:
      return arrow::float64();
    case Type::boolean:
      return arrow::boolean();
    case Type::date:
      return arrow::date32();
    case Type::texts:
      return arrow::list(arrow::utf8());
    case Type::text_map:
      return arrow::map(arrow::utf8(), arrow::utf8());
    case Type::number_map:
      return arrow::map(arrow::utf8(), arrow::float64());
    case Type::spans:
      return span_list();
    case Type::span_map:
      return arrow::map(arrow::utf8(), span_list());
    case Type::answers:
      return arrow::list(arrow::struct_(
          {arrow::field("id", arrow::utf8()), arrow::field("answer", arrow::utf8()),
           arrow::field("option", arrow::utf8()), arrow::field("note", arrow::utf8()),
           arrow::field("logprob", arrow::float64()), arrow::field("raw", arrow::utf8()),
           arrow::field("confidence", arrow::float64()), arrow::field("null_margin", arrow::float64()),
           arrow::field("spans", span_list())}));
    case Type::questions:
      return arrow::list(arrow::struct_(
          {arrow::field("id", arrow::utf8()), arrow::field("question", arrow::utf8()),
           arrow::field("options", arrow::list(arrow::utf8())),
           arrow::field("answers", arrow::list(arrow::utf8())), arrow::field("extra", arrow::utf8())}));
    case Type::integers:
      return arrow::list(arrow::int32());
    case Type::integer_lists:
      return arrow::list(arrow::list(arrow::int32()));
    case Type::decimal:
      return arrow::decimal128(arrow::Decimal128Type::kMaxPrecision, column.decimals);
    case Type::object:
      return arrow::struct_(arrow_fields(column.fields));
    case Type::objects:
      return arrow::list(arrow::struct_(arrow_fields(column.fields)));
  }
  fail("a column has no type");
}

arrow::FieldVector arrow_fields(const std::vector<TableColumn>& columns) {
  arrow::FieldVector fields;
  for (const TableColumn& column : columns) fields.push_back(arrow::field(column.name, arrow_type(column)));
  return fields;
}

class ParquetEncoder : public TableEncoder {
 public:
  ParquetEncoder(const arrow::Schema& schema, std::shared_ptr<arrow::io::OutputStream> target,
                 std::shared_ptr<const arrow::KeyValueMetadata> about)
      : about_(std::move(about)) {
    const auto properties = parquet::WriterProperties::Builder()
                                .compression(arrow::Compression::ZSTD)
                                ->enable_page_checksum()
                                ->max_row_group_length(kRowsPerGroup)
                                ->build();
    writer_ = check(parquet::arrow::FileWriter::Open(schema, arrow::default_memory_pool(), std::move(target),
                                                     properties));
  }
  void write(const std::shared_ptr<arrow::RecordBatch>& group) override {
    check(writer_->WriteTable(*check(arrow::Table::FromRecordBatches({group})), kRowsPerGroup));
  }
  void close() override {
    if (about_) check(writer_->AddKeyValueMetadata(about_));
    check(writer_->Close());
  }

 private:
  std::shared_ptr<const arrow::KeyValueMetadata> about_;
  std::unique_ptr<parquet::arrow::FileWriter> writer_;
};

class ArrowEncoder : public TableEncoder {
 public:
  ArrowEncoder(const arrow::Schema& schema, std::shared_ptr<arrow::io::OutputStream> target,
               const std::shared_ptr<const arrow::KeyValueMetadata>& about) {
    auto options = arrow::ipc::IpcWriteOptions::Defaults();
    options.codec = check(arrow::util::Codec::Create(arrow::Compression::ZSTD));
    writer_ = check(arrow::ipc::MakeFileWriter(std::move(target), schema.WithMetadata(about), options));
  }
  void write(const std::shared_ptr<arrow::RecordBatch>& group) override {
    check(writer_->WriteRecordBatch(*group));
  }
  void close() override { check(writer_->Close()); }

 private:
  std::shared_ptr<arrow::ipc::RecordBatchWriter> writer_;
};

class StreamEncoder : public TableEncoder {
 public:
  StreamEncoder(const arrow::Schema& schema, std::shared_ptr<arrow::io::OutputStream> target,
                const std::shared_ptr<const arrow::KeyValueMetadata>& about)
      : writer_(check(arrow::ipc::MakeStreamWriter(std::move(target), schema.WithMetadata(about)))) {}
  void write(const std::shared_ptr<arrow::RecordBatch>& group) override {
    check(writer_->WriteRecordBatch(*group));
  }
  void close() override { check(writer_->Close()); }

 private:
  std::shared_ptr<arrow::ipc::RecordBatchWriter> writer_;
};

/// Appends a JSON value as what the builder wants; what cannot be that is null, text takes anything.
void append_value(arrow::ArrayBuilder& cell, const ordered_json& value) {
  switch (cell.type()->id()) {
    case arrow::Type::STRING:
      if (value.is_null()) return append_null(cell);
      return append_text(cell, value.is_string() ? value.get<std::string>() : value.dump());
    case arrow::Type::INT64:
      if (!value.is_number_integer()) return append_null(cell);
      return append_integer(cell, value.get<int64_t>());
    case arrow::Type::DOUBLE:
      if (!value.is_number()) return append_null(cell);
      return append_number(cell, value.get<double>());
    case arrow::Type::DATE32:
      return value.is_string() ? append_date(cell, value.get_ref<const std::string&>()) : append_null(cell);
    case arrow::Type::LIST: {
      if (!value.is_array()) return append_null(cell);
      arrow::ArrayBuilder& entries = append_list(cell);
      for (const ordered_json& entry : value) append_value(entries, entry);
      return;
    }
    case arrow::Type::MAP: {
      if (!value.is_object()) return append_null(cell);
      arrow::MapBuilder& map = append_map(cell);
      for (const auto& [key, part] : value.items()) {
        append_text(*map.key_builder(), key);
        append_value(*map.item_builder(), part);
      }
      return;
    }
    case arrow::Type::STRUCT: {
      if (!value.is_object()) return append_null(cell);
      arrow::StructBuilder& record = append_struct(cell);
      const auto type = record.type();
      for (int i = 0; i < record.num_fields(); ++i) {
        const auto at = value.find(type->field(i)->name());
        append_value(*record.field_builder(i), at == value.end() ? ordered_json() : *at);
      }
      return;
    }
    default:
      fail("a column has a type that tables do not support");
  }
}

}  // namespace

/// Arrow's way to our file layer.
class TableWriter::Target : public arrow::io::OutputStream {
 public:
  explicit Target(OutputFile& file) : file_(file) {}
  arrow::Status Close() override {
    closed_ = true;
    return arrow::Status::OK();
  }
  bool closed() const override { return closed_; }
  arrow::Result<int64_t> Tell() const override { return size_; }
  arrow::Status Write(const void* data, int64_t size) override {
    // An exception must not pass through Arrow, nor may anything be written after it, as a writer that is
    // destroyed would.
    if (stopped_) return arrow::Status::IOError("written before");
    try {
      file_.append({static_cast<const char*>(data), static_cast<size_t>(size)});
    } catch (...) {
      failure_ = std::current_exception();
      stopped_ = true;
      return arrow::Status::IOError("not written");
    }
    size_ += size;
    return arrow::Status::OK();
  }
  void stop() { stopped_ = true; }
  /// Throws what kept the file from being written, if anything did.
  void rethrow() const {
    if (failure_) std::rethrow_exception(failure_);
  }

 private:
  OutputFile& file_;
  int64_t size_ = 0;
  bool closed_ = false, stopped_ = false;
  std::exception_ptr failure_;
};

struct TableWriter::State {
  std::shared_ptr<Target> target;
  std::unique_ptr<arrow::RecordBatchBuilder> builder;
  std::unique_ptr<TableEncoder> encoder;
  int64_t rows = 0, bytes = 0;  // of the group being filled
  ~State() { target->stop(); }
};

TableWriter::TableWriter(TableFormat format, const std::vector<TableColumn>& columns, OutputFile& target,
                         const std::string& about)
    : state_(new State{std::make_shared<Target>(target), {}, {}}) {
  const auto schema = arrow::schema(arrow_fields(columns));
  const auto kept = about.empty() ? nullptr : arrow::key_value_metadata({{"sheaf", about}});
  state_->builder = check(arrow::RecordBatchBuilder::Make(schema, arrow::default_memory_pool()));
  write([&] {
    if (format == TableFormat::arrow)
      state_->encoder = std::make_unique<ArrowEncoder>(*schema, state_->target, kept);
    else if (format == TableFormat::arrow_stream)
      state_->encoder = std::make_unique<StreamEncoder>(*schema, state_->target, kept);
    else
      state_->encoder = std::make_unique<ParquetEncoder>(*schema, state_->target, kept);
  });
}

TableWriter::~TableWriter() = default;

size_t TableWriter::columns() const {
  return static_cast<size_t>(state_->builder->num_fields());
}

arrow::ArrayBuilder& TableWriter::cell(size_t column) {
  return *state_->builder->GetField(static_cast<int>(column));
}

void TableWriter::end_row(int64_t bytes) {
  ++state_->rows;
  state_->bytes += bytes;
  if (state_->rows == kRowsPerGroup || state_->bytes >= kBytesPerGroup) write([&] { write_group(); });
}

void TableWriter::end_group() {
  if (state_->rows > 0) write([&] { write_group(); });
}

void TableWriter::close() {
  write([&] {
    if (state_->rows > 0) write_group();
    state_->encoder->close();
  });
}

void TableWriter::write_group() {
  state_->encoder->write(check(state_->builder->Flush()));
  state_->rows = state_->bytes = 0;
}

template <class Work>
void TableWriter::write(const Work& work) {
  try {
    work();
  } catch (...) {
    state_->target->rethrow();
    throw;
  }
}

void write_parquet_lines(const std::string& lines, const std::vector<TableColumn>& columns,
                         OutputFile& target) {
  TableWriter table(TableFormat::parquet, columns, target);
  read_lines(lines, [&](const std::string& line) {
    std::string trouble;
    const ordered_json row = read_json<ordered_json>(line, {}, &trouble);
    if (!trouble.empty()) fail("{}: a line is {}", lines, trouble);
    for (size_t i = 0; i < columns.size(); ++i) {
      const auto at = row.find(columns[i].name);
      append_value(table.cell(i), at == row.end() ? ordered_json() : *at);
    }
    table.end_row(static_cast<int64_t>(line.size()));
  });
  table.close();
}

}  // namespace sheaf
