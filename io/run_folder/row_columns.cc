#include <algorithm>

#include "core/base/error.h"
#include "core/methods/method.h"
#include "io/base/parquet_file.h"
#include "io/corpus/corpus_files.h"
#include "io/run_folder/row_table.h"

namespace sheaf {
namespace {

using Type = TableColumn::Type;

Type column_type(ValueType type) {
  if (type == ValueType::number) return Type::number;
  return type == ValueType::list ? Type::texts : Type::text;
}

void add_attributes(const Schema& schema, const std::string& file, std::vector<TableColumn>& columns) {
  for (const Category& category : schema.categories) {
    for (const Attribute& attribute : category.attributes) {
      const TableColumn column{attribute.name, column_type(attribute.type), true};
      const auto other = std::find_if(columns.begin(), columns.end(),
                                      [&](const TableColumn& known) { return known.name == column.name; });
      if (other == columns.end())
        columns.push_back(column);
      else if (!other->in_values)
        refuse(
            "{}: attribute \"{}\" has the name of a column of every row; rename it, or use output.format "
            "jsonl",
            file, attribute.name);
      else if (other->type != column.type)
        refuse(
            "{}: attribute \"{}\" has one type in category \"{}\" and another elsewhere; give them one, or "
            "use "
            "output.format jsonl",
            file, attribute.name, category.name);
    }
  }
}

}  // namespace

bool has_integer_ids(const Job& job) {
  if (job.input.id.empty()) return true;
  const CorpusFiles corpus = find_corpus_files(job.input.path, job.input.format);
  if (corpus.format != CorpusFormat::parquet) return false;
  return std::all_of(corpus.files.begin(), corpus.files.end(), [&](const std::string& path) {
    const ParquetFile file(path);
    return std::any_of(file.columns().begin(), file.columns().end(), [&](const ParquetFile::Column& column) {
      static const std::vector<std::string> types = {"int8",  "int16",  "int32", "int64",
                                                     "uint8", "uint16", "uint32"};
      return column.name == job.input.id && std::find(types.begin(), types.end(), column.type) != types.end();
    });
  });
}

std::vector<TableColumn> row_columns(const Job& job, const Schema& schema, bool integer_ids) {
  std::vector<TableColumn> columns{{"id", integer_ids ? Type::integer : Type::text, false}};
  const bool logprobs = job.output.logprobs, raw = job.output.raw;
  std::vector<TableColumn> facts;  // about the row as a whole
  if (job.input.too_long == "split") facts.push_back({"parts", Type::integer, false});
  if (job.input.too_long == "truncate") facts.push_back({"cut_tokens", Type::integer, false});
  if (job.output.tokens)
    for (const char* name : {"document_tokens", "answer_tokens"})
      facts.push_back({name, Type::integer, false});
  if (job.output.timing) facts.push_back({"seconds", Type::number, false});
  if (job.task.kind == "extract") {
    const bool whole = find_method(job.method.name).whole_object;
    std::vector<TableColumn> after{{"notes", Type::text_map, false}};
    if (logprobs) after.push_back({"logprobs", whole ? Type::number : Type::number_map, false});
    if (raw) after.push_back({"raw", whole ? Type::text : Type::text_map, false});
    after.insert(after.end(), facts.begin(), facts.end());
    columns.push_back({"category", Type::text, false});
    columns.insert(columns.end(), after.begin(), after.end());
    add_attributes(schema, job.task.schema, columns);
    // The values stand before what is said about them.
    std::rotate(columns.begin() + 2, columns.begin() + 2 + static_cast<ptrdiff_t>(after.size()),
                columns.end());
  } else if (job.task.kind == "ask" && job.input.question.empty()) {
    columns.push_back({"answers", Type::answers, false});
  } else {
    columns.push_back({"answer", Type::text, false});
    if (job.task.kind == "chat")
      columns.push_back({"finish", Type::text, false});
    else
      for (const char* name : {"option", "note"}) columns.push_back({name, Type::text, false});
    if (logprobs) columns.push_back({"logprob", Type::number, false});
    if (raw) columns.push_back({"raw", Type::text, false});
  }
  if (job.task.kind != "extract") columns.insert(columns.end(), facts.begin(), facts.end());
  return columns;
}

}  // namespace sheaf
