#include "io/datasets/gold.h"

#include <algorithm>

#include "core/error.h"
#include "io/datasets/dataset.h"
#include "io/datasets/entry.h"
#include "io/globs.h"
#include "io/line_reader.h"
#include "io/parquet_file.h"

namespace sheaf {
namespace {

using nlohmann::json;
using nlohmann::ordered_json;

/// What stands in `value`, or in the JSON text that stands there: Parquet has no objects of any shape.
json unpacked(const ordered_json& value) {
  if (!value.is_string()) return value;
  return json::parse(value.get_ref<const std::string&>(), nullptr, false);
}

/// The references of a question: "answers", a list, or "answer", one text or null.
GoldAnswer answer_of(const ordered_json& question) {
  GoldAnswer gold;
  gold.id = id_field(question, "id");
  const bool one = question.contains("answer") && !question.contains("answers");
  const ordered_json& answers = one ? question["answer"] : list_field(question, "answers");
  const auto add = [&](const ordered_json& text) {
    if (!text.is_string()) bad_entry("an answer to question {} is not text", gold.id.dump());
    gold.references.push_back(text.get<std::string>());
  };
  if (!one)
    for (const ordered_json& text : answers) add(text);
  else if (!answers.is_null())
    add(answers);
  const auto cannot = std::count(gold.references.begin(), gold.references.end(), "CANNOTANSWER");
  gold.answerable = static_cast<size_t>(cannot) * 2 < gold.references.size();
  if (question.contains("extra") && !question["extra"].is_null()) gold.extra = unpacked(question["extra"]);
  return gold;
}

/// Adds what a row of sheaf's own corpus, or a line {"id", "answers"}, says is right.
void add_gold(const ordered_json& row, std::vector<GoldAnswer>& gold) {
  if (has_list(row, "questions")) {
    for (const ordered_json& question : row["questions"]) gold.push_back(answer_of(question));
  } else if (row.is_object() && row.contains("gold")) {
    json targets = unpacked(row["gold"]);
    if (!targets.is_object()) bad_entry("\"gold\" is not an object");
    GoldAnswer answer;
    answer.id = id_field(row, row.contains("id") ? "id" : "sku");
    answer.extra = {{"category", text_field(row, "category")}, {"gold", json::object()}};
    for (auto& [attribute, values] : targets.items())
      answer.extra["gold"][attribute] = values.is_array()  ? values
                                        : values.is_null() ? json::array()
                                                           : json::array({values});
    gold.push_back(std::move(answer));
  } else {
    gold.push_back(answer_of(row));
  }
}

std::vector<GoldAnswer> dataset_gold(const std::string& format, const std::string& path) {
  std::vector<GoldAnswer> gold;
  const auto reader = open_dataset(format, path);
  while (const auto row = reader->next()) {
    try {
      if (!row->error.empty()) throw BadEntry{row->error};
      add_gold(row->cells, gold);
    } catch (const BadEntry& bad) {
      refuse("{}:{}: no gold answers can be read: {}", row->place.file, row->place.row, bad.reason);
    }
  }
  return gold;
}

void parquet_gold(const std::string& path, std::vector<GoldAnswer>& gold) {
  ParquetFile file(path);
  std::vector<std::string> wanted;
  for (const ParquetFile::Column& column : file.columns())
    for (const char* name : {"id", "sku", "questions", "answers", "answer", "category", "gold"})
      if (column.name == name) wanted.push_back(name);
  file.select(wanted);
  while (const auto batch = file.next()) {
    if (!batch->error.empty()) refuse("{}:{}: {}", path, batch->first_row, batch->error);
    for (size_t i = 0; i < batch->cells.size(); ++i) try {
        add_gold(batch->cells[i], gold);
      } catch (const BadEntry& bad) {
        refuse("{}:{}: no gold answers can be read: {}", path, batch->first_row + static_cast<int64_t>(i),
               bad.reason);
      }
  }
}

void lines_gold(const std::string& path, std::vector<GoldAnswer>& gold) {
  LineReader lines(path);
  while (const auto line = lines.next()) {
    if (trimmed(line->text).empty() && !line->too_long && line->damage.empty()) continue;
    try {
      if (!line->damage.empty()) bad_entry("the rest of the file cannot be read: {}", line->damage);
      if (line->too_long) bad_entry("the line is too long");
      add_gold(parse_entry(line->text), gold);
    } catch (const BadEntry& bad) {
      refuse("{}:{}: no gold answers can be read: {}", path, line->number, bad.reason);
    }
  }
}

}  // namespace

std::vector<GoldAnswer> read_gold(const std::string& format, const std::string& path) {
  std::string name = format;
  if (name == "auto") name = guess_dataset_format(path);
  if (!name.empty() && name != "sheaf") return dataset_gold(name, path);
  std::vector<GoldAnswer> gold;
  const CorpusFiles corpus = find_corpus_files(path, "auto");
  for (const std::string& file : corpus.files)
    corpus.format == CorpusFormat::parquet ? parquet_gold(file, gold) : lines_gold(file, gold);
  return gold;
}

}  // namespace sheaf
