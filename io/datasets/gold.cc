#include "io/datasets/gold.h"

#include <algorithm>

#include "core/text/utf8.h"
#include "io/base/csv_reader.h"
#include "io/base/globs.h"
#include "io/base/paths.h"
#include "io/base/table_file.h"
#include "io/datasets/readers.h"

namespace sheaf {
namespace {

using nlohmann::json;

class ParquetReader : public DatasetReader {
 public:
  explicit ParquetReader(const std::string& path) : path_(path), file_(path) {
    std::vector<std::string> columns;
    for (const TableFile::Column& column : file_.columns()) columns.push_back(column.name);
    file_.select(columns);
  }

  std::optional<DatasetRow> next() override {
    const auto row = file_.next_row();
    if (!row) return std::nullopt;
    return DatasetRow{{path_, row->number}, row->cells, row->error, fmt::format("row {}", row->number)};
  }

 private:
  std::string path_;
  TableFile file_;
};

class CsvRows : public DatasetReader {
 public:
  explicit CsvRows(const std::string& path) : path_(path), rows_(path) {}

  std::optional<DatasetRow> next() override {
    const auto row = rows_.next();
    if (!row) return std::nullopt;
    DatasetRow found{{path_, row->line}, ordered_json::object(), row->error};
    if (row->error.empty())
      for (size_t i = 0; i < rows_.columns().size(); ++i)
        found.cells[rows_.columns()[i]] = csv_cell(rows_.field(i));
    return found;
  }

 private:
  std::string path_;
  CsvReader rows_;
};

/// One file after the other.
class FilesReader : public DatasetReader {
 public:
  explicit FilesReader(CorpusFiles corpus) : corpus_(std::move(corpus)) {}

  std::optional<DatasetRow> next() override {
    for (; file_ < corpus_.files.size(); ++file_, reader_.reset()) {
      if (!reader_) reader_ = open(corpus_.files[file_]);
      if (auto row = reader_->next()) return row;
    }
    return std::nullopt;
  }

 private:
  std::unique_ptr<DatasetReader> open(const std::string& path) const {
    if (corpus_.format == CorpusFormat::table) return std::make_unique<ParquetReader>(path);
    if (corpus_.format == CorpusFormat::csv) return std::make_unique<CsvRows>(path);
    return json_lines_reader(path, "corpus", {}, [](const ordered_json& line, int64_t) { return line; });
  }

  CorpusFiles corpus_;
  size_t file_ = 0;
  std::unique_ptr<DatasetReader> reader_;
};

/// What stands in `value`, or in the JSON text that stands there: Parquet has no objects of any shape.
json unpacked(const ordered_json& value) {
  if (!value.is_string()) return value;
  return read_json(value.get_ref<const std::string&>());
}

/// Empty text says the same as null: the document holds no value.
void check_value(const std::string& attribute, json& value) {
  if (value.is_array())
    reject("\"gold\": attribute \"{}\" has a list in a list; entries are texts, numbers or objects",
           attribute);
  if (value.is_object())
    reject("\"gold\": attribute \"{}\" has an object among other values; a list has objects only or none",
           attribute);
  if (value.is_string() && trimmed(value.get_ref<const std::string&>()).empty()) value = nullptr;
}

/// A value as gold_values() gives it.
void check_gold_value(const std::string& attribute, json& value) {
  if (value.is_object()) {
    for (auto& [key, part] : value.items()) check_gold_value(fmt::format("{}.{}", attribute, key), part);
    return;
  }
  if (value.is_array() && !value.empty() && std::ranges::all_of(value, &json::is_object)) {
    for (json& entry : value) check_gold_value(attribute, entry);
    return;
  }
  const bool text = value.is_string();
  if (!value.is_array()) value = json::array({value});
  for (json& each : value) check_value(attribute, each);
  if (value.size() == 1 && value.front().is_null())
    value.clear();
  else if (text)
    value = json(value.front());
}

/// The references of a question: "answers", a list, or "answer", one text or null.
GoldAnswer answer_of(const ordered_json& question) {
  GoldAnswer gold;
  gold.id = id_field(question, "id");
  if (!question.contains("answer") && !question.contains("answers") && has_list(question, "wrong")) {
    gold.extra = {{"wrong", question["wrong"]}};
    return gold;
  }
  const bool one = question.contains("answer") && !question.contains("answers");
  const ordered_json& answers = one ? question["answer"] : list_field(question, "answers");
  const auto add = [&](const ordered_json& text) {
    if (!text.is_string()) reject("an answer to question {} is not text", gold.id.dump());
    gold.references.push_back(text.get<std::string>());
  };
  if (!one)
    for (const ordered_json& text : answers) add(text);
  else if (!answers.is_null())
    add(answers);
  if (has_list(question, "options") && gold.references.size() == 1 && gold.references[0].size() == 1) {
    const auto index = static_cast<size_t>(gold.references[0][0] - 'A');
    const ordered_json& options = question["options"];
    if (index < options.size() && options[index].is_string()) gold.option = options[index].get<std::string>();
    // The text "B" of option A would be taken for option B.
    const char letter = gold.option.size() == 1 ? small_letter(gold.option[0]) : '\0';
    if (letter >= 'a' && static_cast<size_t>(letter - 'a') < options.size()) gold.option.clear();
  }
  const auto cannot = std::count(gold.references.begin(), gold.references.end(), "CANNOTANSWER");
  gold.answerable = static_cast<size_t>(cannot) * 2 < gold.references.size();
  if (question.contains("extra") && !question["extra"].is_null()) gold.extra = unpacked(question["extra"]);
  return gold;
}

/// The key that a row without "questions" lacks; empty: none.
std::string missing_key(const ordered_json& row, const std::string& id) {
  if (!row.is_object()) return {};
  const bool gold = row.contains("gold");
  if (!gold && !row.contains("answers") && !row.contains("answer") && !row.contains("wrong"))
    return "no \"gold\" or \"answers\"";
  if (gold && !id.empty()) return row.contains(id) ? "" : fmt::format("no \"{}\"", id);
  return row.contains("id") || (gold && row.contains("sku")) ? "" : "no \"id\"";
}

/// Adds what a row of sheaf's own corpus, or a line {"id", "answers"}, says is right.
void add_gold(const ordered_json& row, const GoldOptions& options, std::vector<GoldAnswer>& gold) {
  if (has_list(row, "questions")) {
    for (const ordered_json& question : row["questions"]) gold.push_back(answer_of(question));
    return;
  }
  const std::string& id = options.id;
  if (const std::string missing = missing_key(row, id); !missing.empty())
    reject(
        "{}; a row needs {{\"id\", \"gold\": {{attribute: value}}}} for attributes, or {{\"id\", "
        "\"answers\": "
        "[...]}} for questions{}",
        missing, options.hint);
  if (row.is_object() && row.contains("gold")) {
    GoldAnswer answer;
    json targets = gold_values(row);
    answer.id = id_field(row, !id.empty() ? id.c_str() : row.contains("id") ? "id" : "sku");
    answer.extra = {{"category", row.contains("category") ? text_field(row, "category") : ""},
                    {"gold", std::move(targets)}};
    if (json wrong = wrong_values(row); !wrong.empty()) answer.extra["wrong"] = std::move(wrong);
    gold.push_back(std::move(answer));
  } else {
    gold.push_back(answer_of(row));
  }
}

constexpr const char* kForms =
    "name a dataset as it is downloaded, a corpus that `sheaf convert` wrote, or a .jsonl or .csv file of "
    "{\"id\", "
    "\"answers\": [...]} or {\"id\", \"gold\": {attribute: value}}";

}  // namespace

json gold_values(const ordered_json& row) {
  json targets = unpacked(field(row, "gold"));
  if (!targets.is_object()) reject("\"gold\" is not an object");
  for (auto& [attribute, value] : targets.items()) check_gold_value(attribute, value);
  return targets;
}

json wrong_values(const ordered_json& row) {
  if (!row.contains("wrong")) return json::object();
  json wrong = unpacked(row["wrong"]);
  if (wrong.is_null()) return json::object();
  if (!wrong.is_object()) reject("\"wrong\" is not an object");
  for (const auto& [attribute, values] : wrong.items())
    if (!values.is_array()) reject("\"wrong\" has no list of values for \"{}\"", attribute);
  return wrong;
}

std::unique_ptr<DatasetReader> open_own_corpus(const std::string& path) {
  return std::make_unique<FilesReader>(find_table_files(path, "auto"));
}

std::unique_ptr<DatasetReader> open_gold(const std::string& format, const std::string& path,
                                         std::string_view forms) {
  if (format != "auto" && format != "sheaf") return open_dataset(format, path);
  if (!is_there(path)) refuse("{}: no such file or folder; {}", path, forms);
  const bool folder = is_folder(path);
  std::string found;
  try {
    if (format == "auto") found = guess_dataset_format(path);
    if (found.empty() && folder) return open_own_corpus(path);
  } catch (const Error& error) {
    if (error.fault() != Fault::input) throw;
    if (folder) refuse("{}: this is a folder, but not one of a known dataset; {}", path, forms);
    refuse("{}; {}", error.what(), forms);
  }
  if (!found.empty()) return open_dataset(found, path);
  if (corpus_format(path) == CorpusFormat::unknown)
    refuse("{}: the file has no gold answers; {}", path, forms);
  return open_own_corpus(path);
}

std::vector<GoldAnswer> read_gold(const std::string& format, const std::string& path,
                                  const GoldOptions& options) {
  const auto reader = open_gold(format, path, kForms);
  std::vector<GoldAnswer> gold;
  while (const auto row = reader->next()) {
    try {
      if (!row->error.empty()) throw BadText(row->error);
      const size_t before = gold.size();
      add_gold(row->cells, options, gold);
      for (size_t i = before; i < gold.size(); ++i) gold[i].place = place_text(*row);
    } catch (const BadText& bad) {
      refuse("{}: no gold answers can be read: {}", place_text(*row), bad.reason);
    }
  }
  if (gold.empty() && !options.may_be_empty) refuse("{}: the file has no gold answers; {}", path, kForms);
  return gold;
}

}  // namespace sheaf
