#include "io/run_folder/row_columns.h"

#include <algorithm>

#include "core/base/error.h"
#include "core/methods/method.h"
#include "io/base/table_file.h"
#include "io/corpus/corpus.h"

namespace sheaf {
namespace {

using Field = RowField;
using Type = TableColumn::Type;

Type column_type(ValueType type) {
  if (type == ValueType::number) return Type::number;
  if (type == ValueType::integer) return Type::integer;
  if (type == ValueType::boolean) return Type::boolean;
  return type == ValueType::list ? Type::texts : Type::text;
}

void add_attributes(const Schema& schema, const std::string& file, std::vector<RowColumn>& columns) {
  for (const Category& category : schema.categories) {
    for (const Attribute& attribute : category.attributes) {
      const RowColumn column{Field::attribute, {attribute.name, column_type(attribute.type)}};
      const auto other = std::find_if(columns.begin(), columns.end(), [&](const RowColumn& known) {
        return known.table.name == attribute.name;
      });
      if (other == columns.end())
        columns.push_back(column);
      else if (other->field != Field::attribute)
        refuse(
            "{}: attribute \"{}\" has the name of a column that every row has; rename it, or use "
            "output.format jsonl",
            file, attribute.name);
      else if (other->table.type != column.table.type)
        refuse(
            "{}: attribute \"{}\" has a different type in category \"{}\" than elsewhere; use the same type, "
            "or use output.format jsonl",
            file, attribute.name, category.name);
    }
  }
}

/// What a column of the corpus is in all files of a Parquet corpus: integer or number. Otherwise it is text.
Type corpus_type(const Job::Input& input, const std::string& name) {
  static const std::vector<std::string> integers = {"int8",  "int16",  "int32", "int64",
                                                    "uint8", "uint16", "uint32"};
  const CorpusFiles corpus = find_corpus_files(input);
  if (corpus.format != CorpusFormat::table) return Type::text;
  Type type = Type::integer;
  for (const std::string& path : corpus.files) {
    const TableFile file(path);
    const auto column = std::ranges::find(file.columns(), name, &TableFile::Column::name);
    if (column == file.columns().end()) return Type::text;
    if (std::ranges::find(integers, column->type) != integers.end()) continue;
    if (column->type != "float" && column->type != "double") return Type::text;
    type = Type::number;
  }
  return type;
}

void add_kept(const Job::Input& input, std::vector<RowColumn>& columns) {
  for (const std::string& name : input.keep) {
    for (const RowColumn& column : columns)
      if (column.table.name == name)
        refuse(
            "{}: input.keep: \"{}\" is also an attribute of the schema; leave one out, or use output.format "
            "jsonl",
            input.places.at("input.keep"), name);
    columns.push_back({Field::kept, {name, corpus_type(input, name)}});
  }
}

}  // namespace

bool has_integer_ids(const Job::Input& input) {
  return input.id.empty() || corpus_type(input, input.id) == Type::integer;
}

std::vector<RowColumn> row_columns(const Job& job, const Schema& schema, bool integer_ids) {
  std::vector<RowColumn> columns{{Field::id, {"id", integer_ids ? Type::integer : Type::text}}};
  const bool logprobs = job.output.logprobs, raw = job.output.raw;
  const bool extract = job.task.kind == TaskKind::extract, chat = job.task.kind == TaskKind::chat;
  std::vector<RowColumn> facts;  // about the row as a whole
  if (job.input.too_long == TooLong::split) facts.push_back({Field::parts, {"parts", Type::integer}});
  if (job.input.too_long == TooLong::truncate)
    facts.push_back({Field::cut_tokens, {"cut_tokens", Type::integer}});
  if (job.output.tokens) {
    facts.push_back({Field::document_tokens, {"document_tokens", Type::integer}});
    facts.push_back({Field::answer_tokens, {"answer_tokens", Type::integer}});
  }
  if (job.output.timing) facts.push_back({Field::seconds, {"seconds", Type::number}});
  if (extract) {
    const bool whole = find_method(job.method.name).wording.answers != AnswerForm::each;
    std::vector<RowColumn> after{{Field::notes, {"notes", Type::text_map}}};
    if (logprobs)
      after.push_back(whole ? RowColumn{Field::logprob, {"logprobs", Type::number}}
                            : RowColumn{Field::logprobs, {"logprobs", Type::number_map}});
    if (raw)
      after.push_back(whole ? RowColumn{Field::raw, {"raw", Type::text}}
                            : RowColumn{Field::raws, {"raw", Type::text_map}});
    if (job.output.confidence) {
      after.push_back({Field::confidences, {"confidence", Type::number_map}});
      after.push_back({Field::null_margins, {"null_margins", Type::number_map}});
    }
    if (job.output.spans) after.push_back({Field::spans, {"spans", Type::span_map}});
    after.insert(after.end(), facts.begin(), facts.end());
    columns.push_back({Field::category, {"category", Type::text}});
    columns.insert(columns.end(), after.begin(), after.end());
    add_attributes(schema, job.task.schema, columns);
    // The values stand before what is said about them.
    std::rotate(columns.begin() + 2, columns.begin() + 2 + static_cast<ptrdiff_t>(after.size()),
                columns.end());
    add_kept(job.input, columns);
    return columns;
  }
  if (!chat && job.input.question.empty()) {
    columns.push_back({Field::answers, {"answers", Type::answers}});
  } else {
    columns.push_back({Field::answer, {"answer", Type::text}});
    if (chat) {
      columns.push_back({Field::finish, {"finish", Type::text}});
    } else {
      columns.push_back({Field::option, {"option", Type::text}});
      columns.push_back({Field::note, {"note", Type::text}});
    }
    if (logprobs) columns.push_back({Field::logprob, {"logprob", Type::number}});
    if (raw) columns.push_back({Field::raw, {"raw", Type::text}});
    if (job.output.confidence) columns.push_back({Field::confidence, {"confidence", Type::number}});
  }
  columns.insert(columns.end(), facts.begin(), facts.end());
  add_kept(job.input, columns);
  return columns;
}

}  // namespace sheaf
