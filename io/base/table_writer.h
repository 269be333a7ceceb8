#pragma once
#include "io/base/file_layer.h"

namespace arrow {
class ArrayBuilder;
}

namespace sheaf {

struct TableColumn {
  enum class Type : uint8_t {
    text,
    integer,
    number,
    boolean,
    date,
    texts,
    text_map,
    number_map,
    spans,
    span_map,
    answers,
    questions,
    integers,
    integer_lists,
    decimal,
    object,
    objects
  };
  std::string name;
  Type type = Type::text;
  int32_t decimals = 0;                  ///< of a decimal: digits behind the point
  std::vector<TableColumn> fields = {};  ///< of an object, or of each object of a list

  bool operator==(const TableColumn&) const = default;
};

enum class TableFormat : uint8_t {
  parquet,
  arrow,
  arrow_stream  ///< of Arrow's IPC format, not compressed: not every reader of streams can unpack
};

/// A table being written row by row; files are zstd-compressed. Equal rows give equal bytes. One that is
/// destroyed before it was closed writes nothing more.
class TableWriter {
 public:
  /// `about`: a text kept in the file's metadata under the key "sheaf"; empty: none.
  TableWriter(TableFormat format, const std::vector<TableColumn>& columns, OutputFile& target,
              const std::string& about = {});
  ~TableWriter();
  TableWriter(const TableWriter&) = delete;
  TableWriter& operator=(const TableWriter&) = delete;

  size_t columns() const;
  /// Where the next cell of a column goes (io/base/table_cells.h).
  arrow::ArrayBuilder& cell(size_t column);
  /// After one cell for every column. `bytes`: about how large the row is; rows are written in groups.
  void end_row(int64_t bytes);
  /// Writes the rows so far as a group, which reaches the target.
  void end_group();
  void close();

 private:
  class Target;
  struct State;
  template <class Work>
  void write(const Work& work);
  void write_group();

  std::unique_ptr<State> state_;
};

/// Writes the objects of a file of JSON lines as a Parquet file, whose columns are named as their members.
void write_parquet_lines(const std::string& lines, const std::vector<TableColumn>& columns,
                         OutputFile& target);

}  // namespace sheaf
