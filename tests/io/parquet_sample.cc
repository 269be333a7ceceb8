#include "tests/io/parquet_sample.h"

#include <arrow/array.h>
#include <arrow/builder.h>
#include <arrow/io/file.h>
#include <arrow/ipc/writer.h>
#include <arrow/json/from_string.h>
#include <arrow/table.h>
#include <parquet/arrow/writer.h>
#include <stdexcept>

namespace sheaf {
namespace {

void check(const arrow::Status& status) {
  if (!status.ok()) throw std::runtime_error(status.ToString());
}

template <class Value>
Value check(arrow::Result<Value> result) {
  check(result.status());
  return std::move(result).ValueUnsafe();
}

std::shared_ptr<arrow::DataType> type_of(const std::string& name) {
  if (name == "string") return arrow::utf8();
  if (name == "large_string") return arrow::large_utf8();
  if (name == "dictionary") return arrow::dictionary(arrow::int32(), arrow::utf8());
  if (name == "binary") return arrow::binary();
  if (name == "int64") return arrow::int64();
  if (name == "double") return arrow::float64();
  if (name == "bool") return arrow::boolean();
  if (name == "date") return arrow::date32();
  if (name == "strings") return arrow::list(arrow::utf8());
  if (name == "doubles") return arrow::list(arrow::float64());
  if (name == "item")
    return arrow::struct_({arrow::field("sku", arrow::int64()),
                           arrow::field("kind", arrow::struct_({arrow::field("name", arrow::utf8())}))});
  if (name == "documents")
    return arrow::list(
        arrow::struct_({arrow::field("text", arrow::utf8()), arrow::field("title", arrow::utf8()),
                        arrow::field("score", arrow::float32())}));
  if (name == "questions")
    return arrow::list(
        arrow::struct_({arrow::field("id", arrow::int64()), arrow::field("question", arrow::utf8()),
                        arrow::field("options", arrow::list(arrow::utf8()))}));
  throw std::runtime_error("no sample type " + name);
}

/// Built by hand, because the bytes need not be UTF-8.
std::shared_ptr<arrow::Array> binary_array(const nlohmann::json& values) {
  arrow::BinaryBuilder builder;
  for (const auto& value : values)
    check(value.is_null() ? builder.AppendNull() : builder.Append(value.get_ref<const std::string&>()));
  return check(builder.Finish());
}

std::shared_ptr<arrow::Array> array_of(const SampleColumn& column) {
  if (column.type == "binary") return binary_array(column.values);
  const bool raw = column.values.is_string();  // JSON with numbers that JSON has not, such as NaN
  return check(arrow::json::ArrayFromJSONString(
      type_of(column.type), raw ? column.values.get<std::string>() : column.values.dump()));
}

std::shared_ptr<arrow::Table> table_of(const std::vector<SampleColumn>& columns) {
  arrow::FieldVector fields;
  arrow::ArrayVector arrays;
  for (const SampleColumn& column : columns) {
    arrays.push_back(array_of(column));
    fields.push_back(arrow::field(column.name, arrays.back()->type()));
  }
  return arrow::Table::Make(arrow::schema(fields), arrays);
}

}  // namespace

void write_parquet(const std::string& path, const std::vector<SampleColumn>& columns,
                   const SampleLayout& layout) {
  parquet::WriterProperties::Builder properties;
  properties.compression(layout.compress ? arrow::Compression::ZSTD : arrow::Compression::UNCOMPRESSED);
  layout.dictionary ? properties.enable_dictionary() : properties.disable_dictionary();
  if (layout.checksums) properties.enable_page_checksum();
  properties.data_pagesize(4096);
  const auto arrow_properties = parquet::ArrowWriterProperties::Builder().store_schema()->build();
  auto sink = check(arrow::io::FileOutputStream::Open(path));
  check(parquet::arrow::WriteTable(*table_of(columns), arrow::default_memory_pool(), sink,
                                   layout.rows_per_group, properties.build(), arrow_properties));
  check(sink->Close());
}

void write_arrow(const std::string& path, const std::vector<SampleColumn>& columns, int64_t rows_per_batch) {
  const auto table = table_of(columns);
  auto sink = check(arrow::io::FileOutputStream::Open(path));
  const auto writer = check(arrow::ipc::MakeFileWriter(sink, table->schema()));
  check(writer->WriteTable(*table, rows_per_batch));
  check(writer->Close());
  check(sink->Close());
}

void write_arrow_stream(const std::string& path, const std::vector<SampleColumn>& columns,
                        int64_t rows_per_batch) {
  const auto table = table_of(columns);
  auto sink = check(arrow::io::FileOutputStream::Open(path));
  const auto writer = check(arrow::ipc::MakeStreamWriter(sink, table->schema()));
  check(writer->WriteTable(*table, rows_per_batch));
  check(writer->Close());
  check(sink->Close());
}

}  // namespace sheaf
