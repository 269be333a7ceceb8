#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "core/job/job.h"
#include "core/task/schema.h"
#include "io/base/file_layer.h"

namespace sheaf {

/// A column of a rows file in Parquet.
struct TableColumn {
  enum class Type : uint8_t { text, integer, number, texts, text_map, number_map, answers, questions };
  std::string name;
  Type type = Type::text;
  bool in_values = false;  ///< an attribute: found under "values" in the row
};

/// The columns of a job's rows. extract: id, category, one per attribute of the schema's categories (null in
/// rows of other categories), notes. ask: id and the answer, or a list of answers. `integer_ids`: the ids are
/// whole numbers. Refuses a schema whose attributes clash with one another or with another column.
std::vector<TableColumn> row_columns(const Job& job, const Schema& schema, bool integer_ids);

/// Whether the ids of a job's rows are whole numbers throughout: the column of a Parquet corpus is of such a
/// type, or rows are counted. Ids of JSON lines may be anything.
bool has_integer_ids(const Job& job);

/// Writes the rows of a file of JSON lines as a Parquet file, zstd-compressed. Equal rows give equal bytes.
void write_parquet_rows(const std::string& lines, const std::vector<TableColumn>& columns,
                        OutputFile& target);

}  // namespace sheaf
