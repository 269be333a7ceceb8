#include "io/run_folder/table_rows.h"

#include <algorithm>
#include <cmath>

#include "core/base/error.h"
#include "core/methods/method.h"
#include "core/task/prompt_text.h"
#include "core/task/value_path.h"
#include "core/text/utf8.h"
#include "io/base/table_cells.h"
#include "io/base/table_stream.h"
#include "io/corpus/corpus.h"
#include "io/run_folder/row_line.h"

namespace sheaf {
namespace {

using Field = RowField;
using Type = TableColumn::Type;

Type column_type(ValueType type) {
  using enum ValueType;
  switch (type) {
    case number:
      return Type::number;
    case integer:
      return Type::integer;
    case boolean:
      return Type::boolean;
    case date:
      return Type::date;
    case list:
      return Type::texts;
    case object:
      return Type::object;
    case entries:
      return Type::objects;
    default:
      return Type::text;
  }
}

TableColumn column_of(const Attribute& attribute) {
  TableColumn column{attribute.name, column_type(attribute.type)};
  if (const auto digits = decimals_of(attribute.limits.multiple_of); digits && column.type == Type::number) {
    column.type = Type::decimal;
    column.decimals = *digits;
  }
  for (const Attribute& field : attribute.fields) column.fields.push_back(column_of(field));
  return column;
}

void add_attributes(const Schema& schema, const std::string& file, std::vector<RowColumn>& columns) {
  for (const Category& category : schema.categories) {
    for (const Attribute& attribute : category.attributes) {
      const RowColumn column{Field::attribute, column_of(attribute)};
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
      else if (other->table != column.table)
        refuse(
            "{}: attribute \"{}\" has a different type in category \"{}\" than elsewhere; use the same type, "
            "or use output.format jsonl",
            file, attribute.name, category.name);
    }
  }
}

/// What a column of the corpus is in all files of a Parquet corpus: integer, number or date. Otherwise it is
/// text.
Type corpus_type(const Job::Input& input, const std::string& name) {
  static const std::vector<std::string> integers = {"int8",  "int16",  "int32", "int64",
                                                    "uint8", "uint16", "uint32"};
  const auto type_of = [](const std::string& type) {
    if (type == "date32[day]") return Type::date;
    if (std::ranges::find(integers, type) != integers.end()) return Type::integer;
    return type == "float" || type == "double" ? Type::number : Type::text;
  };
  const auto type_in = [&](const std::vector<TableFile::Column>& columns) {
    const auto column = std::ranges::find(columns, name, &TableFile::Column::name);
    return column == columns.end() ? Type::text : type_of(column->type);
  };
  if (input.table) return type_in(input.table->columns());
  const CorpusFiles corpus = find_corpus_files(input);
  if (corpus.format != CorpusFormat::table) return Type::text;
  std::optional<Type> type;
  for (const std::string& path : corpus.files) {
    const Type own = type_in(TableFile(path).columns());
    const bool numbers = type && *type != own && *type != Type::date && own != Type::date;
    if (own == Type::text || (type && *type != own && !numbers)) return Type::text;
    type = numbers ? Type::number : own;
  }
  return type.value_or(Type::text);
}

void add_kept(const Job::Input& input, std::vector<RowColumn>& columns) {
  for (const std::string& name : input.keep) {
    for (const RowColumn& column : columns)
      if (column.table.name == name)
        refuse(
            "{}: \"{}\" is also an attribute of the schema; leave one out, or use output.format "
            "jsonl",
            input.places.at("input.keep"), name);
    columns.push_back({Field::kept, {name, corpus_type(input, name)}});
  }
}

using Texts = std::vector<std::string>;

/// Text as a line of JSON would have it, so that rows which are read back from lines give the same bytes.
void append_valid(arrow::ArrayBuilder& cell, const std::string& text) {
  append_text(cell, valid_prefix(text) == text.size() ? text : valid_utf8(text));
}

void append_finite(arrow::ArrayBuilder& cell, double number) {
  std::isfinite(number) ? append_number(cell, number) : append_null(cell);
}

void append_id(arrow::ArrayBuilder& cell, const nlohmann::json& id) {
  if (cell.type()->id() == arrow::Type::INT64)
    id.is_number_integer() ? append_integer(cell, id.get<int64_t>()) : append_null(cell);
  else if (id.is_null())
    append_null(cell);
  else
    append_valid(cell, id.is_string() ? id.get<std::string>() : id.dump());
}

template <class Value, class Append>
void append_optional(arrow::ArrayBuilder& cell, const std::optional<Value>& value, const Append& append) {
  value ? append(cell, *value) : append_null(cell);
}

void append_note(arrow::ArrayBuilder& cell, const std::string& note) {
  note.empty() ? append_null(cell) : append_valid(cell, note);
}

/// Text takes anything, as JSON where it is not text. What a column of numbers cannot hold is null.
void append_kept(arrow::ArrayBuilder& cell, const nlohmann::ordered_json& row, const std::string& name) {
  const auto kept = row.find(name);
  if (kept == row.end() || kept->is_null()) return append_null(cell);
  switch (cell.type()->id()) {
    case arrow::Type::INT64:
      return kept->is_number_integer() ? append_integer(cell, kept->get<int64_t>()) : append_null(cell);
    case arrow::Type::DOUBLE:
      return kept->is_number() ? append_finite(cell, kept->get<double>()) : append_null(cell);
    case arrow::Type::DATE32:
      return kept->is_string() ? append_date(cell, kept->get_ref<const std::string&>()) : append_null(cell);
    default:
      append_valid(cell, kept->is_string()
                             ? kept->get<std::string>()
                             : kept->dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
  }
}

void append_value(arrow::ArrayBuilder& cell, const RowValue& value);

void append_object(arrow::ArrayBuilder& cell, const RowObject& object) {
  if (cell.type()->id() != arrow::Type::STRUCT) return append_null(cell);
  arrow::StructBuilder& record = append_struct(cell);
  const auto type = record.type();  // each call makes one
  for (int i = 0; i < record.num_fields(); ++i) {
    const auto field = std::ranges::find(object.values, type->field(i)->name(), &AttributeValue::name);
    append_value(*record.field_builder(i), field == object.values.end() ? RowValue() : field->answer.value);
  }
}

void append_any_number(arrow::ArrayBuilder& cell, double number) {
  const auto type = cell.type()->id();
  if (type == arrow::Type::DECIMAL128 && std::isfinite(number)) return append_decimal(cell, number);
  type == arrow::Type::DOUBLE ? append_finite(cell, number) : append_null(cell);
}

/// What the column cannot hold is null; text takes anything.
void append_value(arrow::ArrayBuilder& cell, const RowValue& value) {
  const auto type = cell.type()->id();
  const auto append = [&](const auto& held) {
    using Held = std::decay_t<decltype(held)>;
    if constexpr (std::is_same_v<Held, std::nullptr_t>) {
      append_null(cell);
    } else if (type == arrow::Type::STRING) {
      if constexpr (std::is_same_v<Held, std::string>)
        append_valid(cell, held);
      else
        append_text(cell, value_json(held).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
    } else if constexpr (std::is_same_v<Held, std::string>) {
      type == arrow::Type::DATE32 ? append_date(cell, held) : append_null(cell);
    } else if constexpr (std::is_same_v<Held, bool>) {
      type == arrow::Type::BOOL ? append_boolean(cell, held) : append_null(cell);
    } else if constexpr (std::is_same_v<Held, int64_t>) {
      type == arrow::Type::INT64 ? append_integer(cell, held)
                                 : append_any_number(cell, static_cast<double>(held));
    } else if constexpr (std::is_arithmetic_v<Held>) {
      append_any_number(cell, static_cast<double>(held));
    } else if constexpr (std::is_same_v<Held, RowObject>) {
      append_object(cell, held);
    } else if constexpr (std::is_same_v<Held, std::vector<RowObject>>) {
      if (type != arrow::Type::LIST) return append_null(cell);
      arrow::ArrayBuilder& entries = append_list(cell);
      for (const RowObject& entry : held) append_object(entries, entry);
    } else if constexpr (std::is_same_v<Held, Texts>) {
      if (type != arrow::Type::LIST) return append_null(cell);
      arrow::ArrayBuilder& entries = append_list(cell);
      for (const std::string& text : held) append_valid(entries, text);
    } else {
      append_null(cell);
    }
  };
  std::visit(append, value);
}

/// Null where there is nothing to say.
const std::string* said(const std::string& note) {
  return note.empty() ? nullptr : &note;
}
template <class Value>
const Value* said(const std::optional<Value>& value) {
  return value ? &*value : nullptr;
}

/// A map from the paths of values to what a `member` of their answers says; null where none says it.
template <class Member, class Append>
void append_about(arrow::ArrayBuilder& cell, const ExtractedValues& extracted, Member RowAnswer::*member,
                  const Append& append) {
  arrow::MapBuilder* map = nullptr;
  visit_values(extracted.values, [&](const std::string& path, const RowAnswer& answer) {
    const auto* value = said(answer.*member);
    if (!value) return;
    if (!map) map = &append_map(cell);
    append_valid(*map->key_builder(), path);
    append(*map->item_builder(), *value);
  });
  if (!map) append_null(cell);
}

void append_spans(arrow::ArrayBuilder& cell, const std::vector<std::optional<RowSpan>>& spans) {
  arrow::ArrayBuilder& entries = append_list(cell);
  for (const auto& span : spans) {
    if (!span) {
      append_null(entries);
      continue;
    }
    arrow::StructBuilder& entry = append_struct(entries);
    append_valid(*entry.field_builder(0), span->column);
    append_integer(*entry.field_builder(1), span->start);
    append_integer(*entry.field_builder(2), span->end);
  }
}

void append_answers(arrow::ArrayBuilder& cell, const std::vector<QuestionAnswer>& answers) {
  arrow::ArrayBuilder& entries = append_list(cell);
  for (const auto& [id, answer] : answers) {
    arrow::StructBuilder& entry = append_struct(entries);
    append_id(*entry.field_builder(0), id);
    append_value(*entry.field_builder(1), answer.value);
    append_optional(*entry.field_builder(2), answer.option, append_valid);
    append_note(*entry.field_builder(3), answer.note);
    append_optional(*entry.field_builder(4), answer.logprob, append_finite);
    append_optional(*entry.field_builder(5), answer.raw, append_valid);
    append_optional(*entry.field_builder(6), answer.confidence, append_finite);
    append_optional(*entry.field_builder(7), answer.null_margin, append_finite);
    append_optional(*entry.field_builder(8), answer.spans, append_spans);
  }
}

void append_samples(arrow::ArrayBuilder& cell, const std::vector<RowContent>& samples) {
  if (samples.empty()) return append_null(cell);
  arrow::ArrayBuilder& entries = append_list(cell);
  for (const RowContent& sample : samples)
    append_valid(entries, sample_json(sample).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
}

class TableRows : public RowsWriter {
 public:
  TableRows(TableFormat format, const std::vector<RowColumn>& columns, OutputFile& target)
      : columns_(columns), table_(format, table_columns(columns), target, about(columns)) {}

  void add(const Row& row, int64_t bytes) override {
    for (size_t i = 0; i < columns_.size(); ++i) append(table_.cell(i), columns_[i], row);
    table_.end_row(bytes);
  }

  void end_group() override { table_.end_group(); }
  void close() override { table_.close(); }

 private:
  static std::vector<TableColumn> table_columns(const std::vector<RowColumn>& columns) {
    std::vector<TableColumn> tables;
    for (const RowColumn& column : columns) tables.push_back(column.table);
    return tables;
  }

  /// Which columns are kept, for who reads the others as attributes.
  static std::string about(const std::vector<RowColumn>& columns) {
    nlohmann::json kept = nlohmann::json::array();
    for (const RowColumn& column : columns)
      if (column.field == RowField::kept) kept.push_back(column.table.name);
    return kept.empty() ? std::string() : nlohmann::json{{"kept", kept}}.dump();
  }

  static void append(arrow::ArrayBuilder& cell, const RowColumn& column, const Row& row) {
    switch (column.field) {
      case RowField::id:
        return append_id(cell, row.id);
      case RowField::parts:
        return row.parts > 1 ? append_integer(cell, row.parts) : append_null(cell);
      case RowField::cut_tokens:
        return row.cut_tokens > 0 ? append_integer(cell, row.cut_tokens) : append_null(cell);
      case RowField::document_tokens:
        return append_optional(cell, row.document_tokens, append_integer);
      case RowField::answer_tokens:
        return append_optional(cell, row.answer_tokens, append_integer);
      case RowField::seconds:
        return append_optional(cell, row.seconds, append_finite);
      case RowField::kept:
        return append_kept(cell, row.kept, column.table.name);
      case RowField::samples:
        return append_samples(cell, row.samples);
      default:
        break;
    }
    if (const auto* extracted = std::get_if<ExtractedValues>(&row.content))
      append_extracted(cell, column, *extracted);
    else if (const auto* answer = std::get_if<RowAnswer>(&row.content))
      append_answer(cell, column, *answer);
    else if (column.field == RowField::answers)
      append_answers(cell, std::get<std::vector<QuestionAnswer>>(row.content));
    else
      append_null(cell);
  }

  static void append_extracted(arrow::ArrayBuilder& cell, const RowColumn& column,
                               const ExtractedValues& extracted) {
    switch (column.field) {
      case RowField::category:
        return append_valid(cell, extracted.category);
      case RowField::attribute:
        for (const auto& [name, answer] : extracted.values)
          if (name == column.table.name) return append_value(cell, answer.value);
        return append_null(cell);
      case RowField::notes:
        return append_about(cell, extracted, &RowAnswer::note, append_valid);
      case RowField::logprobs:
        return append_about(cell, extracted, &RowAnswer::logprob, append_finite);
      case RowField::raws:
        return append_about(cell, extracted, &RowAnswer::raw, append_valid);
      case RowField::confidences:
        return append_about(cell, extracted, &RowAnswer::confidence, append_finite);
      case RowField::null_margins:
        return append_about(cell, extracted, &RowAnswer::null_margin, append_finite);
      case RowField::spans:
        return append_about(cell, extracted, &RowAnswer::spans, append_spans);
      case RowField::sources:
        return append_about(cell, extracted, &RowAnswer::source, append_valid);
      case RowField::logprob:
        return append_optional(cell, extracted.logprob, append_finite);
      case RowField::raw:
        return append_optional(cell, extracted.raw, append_valid);
      default:
        return append_null(cell);
    }
  }

  static void append_answer(arrow::ArrayBuilder& cell, const RowColumn& column, const RowAnswer& answer) {
    switch (column.field) {
      case RowField::answer:
        return append_value(cell, answer.value);
      case RowField::option:
        return append_optional(cell, answer.option, append_valid);
      case RowField::note:
        return append_note(cell, answer.note);
      case RowField::finish:
        return answer.finish ? append_text(cell, finish_name(*answer.finish)) : append_null(cell);
      case RowField::logprob:
        return append_optional(cell, answer.logprob, append_finite);
      case RowField::raw:
        return append_optional(cell, answer.raw, append_valid);
      case RowField::reasoning:
        return append_optional(cell, answer.reasoning, append_valid);
      case RowField::confidence:
        return append_optional(cell, answer.confidence, append_finite);
      case RowField::null_margin:
        return append_optional(cell, answer.null_margin, append_finite);
      case RowField::places:
        return append_optional(cell, answer.spans, append_spans);
      default:
        return append_null(cell);
    }
  }

  std::vector<RowColumn> columns_;
  TableWriter table_;
};

}  // namespace

bool has_integer_ids(const Job::Input& input) {
  return input.id.empty() || corpus_type(input, input.id) == Type::integer;
}

std::vector<RowColumn> row_columns(const Job& job, const Schema& schema, bool integer_ids) {
  std::vector<RowColumn> columns{{Field::id, {"id", integer_ids ? Type::integer : Type::text}}};
  const bool logprobs = job.output.logprobs, raw = job.output.raw;
  const bool extract = job.task.kind == TaskKind::extract, chat = job.task.kind == TaskKind::chat;
  std::vector<RowColumn> facts;  // about the row as a whole
  if (chat || (job.method.samples > 1 && job.output.samples == SampleRows::all))
    facts.push_back({Field::samples, {"samples", Type::texts}});
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
    if (job.output.sources) after.push_back({Field::sources, {"sources", Type::text_map}});
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
  if (!chat && !asks_one_question(job)) {
    columns.push_back({Field::answers, {"answers", Type::answers}});
  } else {
    columns.push_back({Field::answer, {"answer", Type::text}});
    if (chat) {
      columns.push_back({Field::finish, {"finish", Type::text}});
      if (job.model.reasoning != Reasoning::none) columns.push_back({Field::note, {"note", Type::text}});
      if (job.output.reasoning) columns.push_back({Field::reasoning, {"reasoning", Type::text}});
    } else {
      columns.push_back({Field::option, {"option", Type::text}});
      columns.push_back({Field::note, {"note", Type::text}});
      if (job.output.reasoning) columns.push_back({Field::reasoning, {"reasoning", Type::text}});
    }
    if (logprobs) columns.push_back({Field::logprob, {"logprob", Type::number}});
    if (raw) columns.push_back({Field::raw, {"raw", Type::text}});
    if (job.output.confidence) columns.push_back({Field::confidence, {"confidence", Type::number}});
    if (job.output.confidence && !chat)
      columns.push_back({Field::null_margin, {"null_margin", Type::number}});
    if (job.output.spans) columns.push_back({Field::places, {"spans", Type::spans}});
  }
  columns.insert(columns.end(), facts.begin(), facts.end());
  add_kept(job.input, columns);
  return columns;
}

bool is_table(OutputFormat format) {
  return format == OutputFormat::parquet || format == OutputFormat::arrow;
}

std::unique_ptr<RowsWriter> write_table_rows(OutputFormat format, const std::vector<RowColumn>& columns,
                                             OutputFile& target) {
  const auto written = format == OutputFormat::arrow ? TableFormat::arrow : TableFormat::parquet;
  return std::make_unique<TableRows>(written, columns, target);
}

std::unique_ptr<RowsWriter> write_streamed_rows(const std::vector<RowColumn>& columns, OutputFile& target) {
  return std::make_unique<TableRows>(TableFormat::arrow_stream, columns, target);
}

}  // namespace sheaf
