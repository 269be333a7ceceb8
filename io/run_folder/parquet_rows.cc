#include <arrow/builder.h>
#include <arrow/io/interfaces.h>
#include <arrow/record_batch.h>
#include <arrow/table.h>
#include <arrow/table_builder.h>
#include <exception>
#include <nlohmann/json.hpp>
#include <parquet/arrow/writer.h>

#include "core/base/error.h"
#include "core/text/json_reader.h"
#include "io/run_folder/row_table.h"

namespace sheaf {
namespace {

using nlohmann::ordered_json;
using Type = TableColumn::Type;

constexpr int64_t kRowsPerGroup = 1 << 16;
constexpr int64_t kBytesPerGroup = 64 << 20;  // of JSON lines: raw text may make rows large

void check(const arrow::Status& status) {
  if (!status.ok()) fail("a rows file cannot be written as Parquet: {}", status.ToString());
}

template <class Value>
Value check(arrow::Result<Value> result) {
  check(result.status());
  return std::move(result).ValueUnsafe();
}

/// Arrow's way to our file layer.
class TargetStream : public arrow::io::OutputStream {
 public:
  explicit TargetStream(OutputFile& target) : target_(target) {}
  arrow::Status Close() override {
    closed_ = true;
    return arrow::Status::OK();
  }
  bool closed() const override { return closed_; }
  arrow::Result<int64_t> Tell() const override { return size_; }
  arrow::Status Write(const void* data, int64_t size) override {
    // An exception must not pass through Arrow, nor may anything be written after it, as a writer that is
    // destroyed would.
    if (failure_) return arrow::Status::IOError("written before");
    try {
      target_.append({static_cast<const char*>(data), static_cast<size_t>(size)});
    } catch (...) {
      failure_ = std::current_exception();
      return arrow::Status::IOError("not written");
    }
    size_ += size;
    return arrow::Status::OK();
  }
  /// Throws what kept the target from being written, if anything did.
  void rethrow() const {
    if (failure_) std::rethrow_exception(failure_);
  }

 private:
  OutputFile& target_;
  int64_t size_ = 0;
  bool closed_ = false;
  std::exception_ptr failure_;
};

std::shared_ptr<arrow::DataType> arrow_type(Type type) {
  switch (type) {
    case Type::text:
      return arrow::utf8();
    case Type::integer:
      return arrow::int64();
    case Type::number:
      return arrow::float64();
    case Type::texts:
      return arrow::list(arrow::utf8());
    case Type::text_map:
      return arrow::map(arrow::utf8(), arrow::utf8());
    case Type::number_map:
      return arrow::map(arrow::utf8(), arrow::float64());
    case Type::answers:
      return arrow::list(
          arrow::struct_({arrow::field("id", arrow::utf8()), arrow::field("answer", arrow::utf8()),
                          arrow::field("option", arrow::utf8()), arrow::field("note", arrow::utf8()),
                          arrow::field("logprob", arrow::float64()), arrow::field("raw", arrow::utf8())}));
    case Type::questions:
      return arrow::list(arrow::struct_(
          {arrow::field("id", arrow::utf8()), arrow::field("question", arrow::utf8()),
           arrow::field("options", arrow::list(arrow::utf8())),
           arrow::field("answers", arrow::list(arrow::utf8())), arrow::field("extra", arrow::utf8())}));
  }
  fail("a column without a type");
}

/// Appends a JSON value as what the builder wants; what cannot be that is null, text takes anything.
void append_value(arrow::ArrayBuilder& builder, const ordered_json& value) {
  const auto null = [&] { check(builder.AppendNull()); };
  switch (builder.type()->id()) {
    case arrow::Type::STRING: {
      auto& texts = static_cast<arrow::StringBuilder&>(builder);
      if (value.is_null()) return null();
      return check(texts.Append(value.is_string() ? value.get<std::string>() : value.dump()));
    }
    case arrow::Type::INT64:
      if (!value.is_number_integer()) return null();
      return check(static_cast<arrow::Int64Builder&>(builder).Append(value.get<int64_t>()));
    case arrow::Type::DOUBLE:
      if (!value.is_number()) return null();
      return check(static_cast<arrow::DoubleBuilder&>(builder).Append(value.get<double>()));
    case arrow::Type::LIST: {
      if (!value.is_array()) return null();
      auto& list = static_cast<arrow::ListBuilder&>(builder);
      check(list.Append());
      for (const ordered_json& part : value) append_value(*list.value_builder(), part);
      return;
    }
    case arrow::Type::MAP: {
      if (!value.is_object()) return null();
      auto& map = static_cast<arrow::MapBuilder&>(builder);
      check(map.Append());
      for (const auto& [key, part] : value.items()) {
        append_value(*map.key_builder(), key);
        append_value(*map.item_builder(), part);
      }
      return;
    }
    case arrow::Type::STRUCT: {
      auto& record = static_cast<arrow::StructBuilder&>(builder);
      check(record.Append());
      for (int i = 0; i < record.num_fields(); ++i) {
        const auto at = value.find(record.type()->field(i)->name());
        append_value(*record.field_builder(i), at == value.end() ? ordered_json() : *at);
      }
      return;
    }
    default:
      fail("a column of a type that rows do not have");
  }
}

const ordered_json& cell_of(const ordered_json& row, const TableColumn& column) {
  static const ordered_json none;
  const ordered_json* place = &row;
  if (column.in_values) {
    const auto values = row.find("values");
    if (values == row.end()) return none;
    place = &*values;
  }
  const auto at = place->find(column.name);
  return at == place->end() ? none : *at;
}

void write_table(const std::string& lines, const std::vector<TableColumn>& columns,
                 const std::shared_ptr<TargetStream>& stream) {
  arrow::FieldVector fields;
  for (const TableColumn& column : columns)
    fields.push_back(arrow::field(column.name, arrow_type(column.type)));
  const auto schema = arrow::schema(fields);
  const auto properties = parquet::WriterProperties::Builder()
                              .compression(arrow::Compression::ZSTD)
                              ->enable_page_checksum()
                              ->max_row_group_length(kRowsPerGroup)
                              ->build();
  const auto writer =
      check(parquet::arrow::FileWriter::Open(*schema, arrow::default_memory_pool(), stream, properties));
  const auto builder = check(arrow::RecordBatchBuilder::Make(schema, arrow::default_memory_pool()));
  int64_t rows = 0, bytes = 0;
  const auto write_group = [&] {
    const auto batch = check(builder->Flush());
    check(writer->WriteTable(*check(arrow::Table::FromRecordBatches({batch})), kRowsPerGroup));
    rows = bytes = 0;
  };
  const auto add_row = [&](const std::string& line) {
    std::string trouble;
    const ordered_json row = read_json<ordered_json>(line, {}, &trouble);
    if (!trouble.empty()) fail("{}: a line is {}", lines, trouble);
    for (size_t i = 0; i < columns.size(); ++i)
      append_value(*builder->GetField(static_cast<int>(i)), cell_of(row, columns[i]));
    ++rows;
    bytes += static_cast<int64_t>(line.size());
    if (rows == kRowsPerGroup || bytes >= kBytesPerGroup) write_group();
  };
  std::string line;
  read_pieces(lines, [&](std::string_view piece) {
    for (size_t end; (end = piece.find('\n')) != std::string_view::npos; piece.remove_prefix(end + 1)) {
      line += piece.substr(0, end);
      add_row(line);
      line.clear();
    }
    line += piece;
  });
  if (rows > 0) write_group();
  check(writer->Close());
}

}  // namespace

void write_parquet_rows(const std::string& lines, const std::vector<TableColumn>& columns,
                        OutputFile& target) {
  const auto stream = std::make_shared<TargetStream>(target);
  try {
    write_table(lines, columns, stream);
  } catch (...) {
    stream->rethrow();
    throw;
  }
}

}  // namespace sheaf
