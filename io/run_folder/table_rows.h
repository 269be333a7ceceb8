#pragma once
#include <cstdint>
#include <memory>
#include <vector>

#include "core/job/job.h"
#include "core/job/words.h"
#include "core/task/row.h"
#include "core/task/schema.h"
#include "io/base/table_writer.h"

namespace sheaf {

/// What of a row a column holds.
enum class RowField : uint8_t {
  id,
  category,
  attribute,     ///< the value of the attribute that the column is named after
  notes,         ///< of attributes
  logprobs,      ///< of attributes
  raws,          ///< of attributes
  confidences,   ///< of attributes
  null_margins,  ///< of attributes
  spans,         ///< of attributes
  sources,       ///< of attributes
  answers,       ///< of all questions
  answer,
  option,
  note,
  finish,
  logprob,      ///< of the one answer that the row has
  raw,          ///< text of the one answer that the row has
  reasoning,    ///< what was thought before it
  confidence,   ///< of the one answer that the row has
  null_margin,  ///< of the one answer that the row has
  places,       ///< spans of the one answer that the row has
  samples,      ///< each as JSON
  parts,
  cut_tokens,
  document_tokens,
  answer_tokens,
  seconds,
  kept,  ///< the column of the corpus that has the same name
};

/// A column of a rows file that is a table.
struct RowColumn {
  RowField field;
  TableColumn table;
};

/// The columns of a job's rows. extract: id, category, one per attribute of the schema's categories (null in
/// rows of other categories), notes. ask: id and the answer, or a list of answers. `integer_ids`: the ids are
/// whole numbers. Kept columns come last. Refuses a schema whose attributes clash with one another or with
/// another column.
std::vector<RowColumn> row_columns(const Job& job, const Schema& schema, bool integer_ids);

/// Whether the ids of a job's rows are whole numbers throughout: the column of a Parquet corpus is of such a
/// type, or rows are counted. Ids of JSON lines may be anything.
bool has_integer_ids(const Job::Input& input);

/// Writes a rows file. One that is destroyed before it was closed writes nothing more.
class RowsWriter {
 public:
  virtual ~RowsWriter() = default;
  /// `bytes`: of the row as a line of JSON.
  virtual void add(const Row& row, int64_t bytes) = 0;
  /// What was added so far reaches the file.
  virtual void end_group() {}
  virtual void close() = 0;
};

/// Whether rows of the format are a table; otherwise they are lines.
bool is_table(OutputFormat format);

/// Writes rows as a table. `target` must outlive the writer.
std::unique_ptr<RowsWriter> write_table_rows(OutputFormat format, const std::vector<RowColumn>& columns,
                                             OutputFile& target);
/// Writes rows as a stream of Arrow's IPC format.
std::unique_ptr<RowsWriter> write_streamed_rows(const std::vector<RowColumn>& columns, OutputFile& target);

}  // namespace sheaf
