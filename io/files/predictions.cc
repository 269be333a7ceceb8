#include "io/files/predictions.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <set>

#include "core/base/error.h"
#include "core/text/json_reader.h"
#include "core/text/utf8.h"
#include "io/base/globs.h"
#include "io/base/json_file.h"
#include "io/base/mapped_file.h"
#include "io/base/store_uri.h"
#include "io/base/table_file.h"

namespace sheaf {
namespace {

using nlohmann::json;
namespace fs = std::filesystem;

constexpr const char* kForms = "name a run's folder, its rows-* files, or a .json file {id: answer}";

/// What rows of extract say of every value in numbers.
constexpr const char* kNumbers[] = {"confidence", "null_margins"};

/// A column of such numbers, not of an attribute with that name.
bool is_about(const std::string& column, const json& cell) {
  return cell.is_object() && std::ranges::find(kNumbers, column) != std::end(kNumbers);
}

class PredictionReader {
 public:
  explicit PredictionReader(const std::string& path) { predictions_.path = path; }

  void read_object(const std::string& path) {
    const auto file = MappedFile::open(path);
    if (file->text().find_first_not_of(" \t\r\n") == std::string_view::npos)
      refuse("{}: the file is empty; {}", path, kForms);
    const json object = parse_json(file->text(), path);
    if (!object.is_object() || object.empty())
      refuse("{}: this is not an object {{id: answer}}; {}", path, kForms);
    place_ = path;
    const auto nested = object.find("answer");  // HotpotQA's form has the supporting facts beside the answers
    const bool hotpot = nested != object.end() && nested->is_object();
    for (const auto& [id, answer] : (hotpot ? *nested : object).items()) {
      if (answer.is_object()) refuse("{}: the answer to {} is an object; {}", path, shown(id), kForms);
      add(id, {{"answer", answer}}, false);
    }
  }

  void read_lines(const std::string& path) {
    each_json_line(
        path,
        [&](const json& row, const std::string& place) {
          place_ = place;
          add_row(row);
        },
        [](const std::string& key) { return key != "raw" && key != "logprobs" && key != "context"; });
  }

  void read_table(const std::string& path) {
    TableFile file(path);
    file.read_decimals_as_numbers();
    const std::vector<std::string> columns = value_columns(file);
    const auto has = [&](const char* name) {
      return std::find(columns.begin(), columns.end(), name) != columns.end();
    };
    // Attributes are columns of their own, and "answer" may be one of them.
    const bool documents =
        (!has("answer") && !has("answers")) || (has("category") && file_has(file, "notes"));
    for (const std::string& name : columns)
      if (documents && name != "id" && name != "category" &&
          std::ranges::find(kNumbers, name) == std::end(kNumbers))
        predictions_.attributes.insert(name);
    file.select(columns);
    std::vector<json> rows;
    while (const auto batch = file.next()) {
      if (!batch->error.empty()) refuse("{}: row {}: {}", path, batch->first_row, batch->error);
      for (size_t i = 0; i < batch->cells.size(); ++i) {
        place_ = fmt::format("{}: row {}", path, batch->first_row + static_cast<int64_t>(i));
        if (documents)
          rows.push_back(batch->cells[i]);
        else
          add_row(batch->cells[i]);
      }
    }
    place_ = path;
    add_documents(std::move(rows));
  }

  Predictions take() && {
    if (predictions_.ids.empty()) refuse("{}: the file has no predictions; {}", predictions_.path, kForms);
    return std::move(predictions_);
  }

 private:
  static bool file_has(const TableFile& file, std::string_view name) {
    return std::any_of(file.columns().begin(), file.columns().end(),
                       [&](const TableFile::Column& column) { return column.name == name; });
  }

  /// Columns of the corpus, which the file's metadata names (io/run_folder/table_rows.cc).
  static std::vector<std::string> kept_columns(const TableFile& file) {
    const json about = read_json(file.about());
    std::vector<std::string> kept;
    if (about.is_object() && about.contains("kept") && about["kept"].is_array())
      for (const json& name : about["kept"])
        if (name.is_string()) kept.push_back(name.get<std::string>());
    return kept;
  }

  /// All but those and the ones that say something about a row (io/run_folder/row_columns.cc).
  static std::vector<std::string> value_columns(const TableFile& file) {
    constexpr std::string_view about[] = {"notes",      "logprobs",        "raw",           "spans",  "parts",
                                          "cut_tokens", "document_tokens", "answer_tokens", "seconds"};
    const std::vector<std::string> kept = kept_columns(file);
    std::vector<std::string> columns;
    for (const TableFile::Column& column : file.columns())
      if (std::find(std::begin(about), std::end(about), column.name) == std::end(about) &&
          std::find(kept.begin(), kept.end(), column.name) == kept.end())
        columns.push_back(column.name);
    return columns;
  }

  /// Rows of a table have every category's attributes; a category's own are those that some row of it has a
  /// value or a confidence for.
  void add_documents(std::vector<json> rows) {
    std::map<std::string, std::set<std::string>> own;
    for (const json& row : rows)
      for (const auto& [name, value] : row.items()) {
        std::set<std::string>& names = own[id_text(row.value("category", json()))];
        if (is_about(name, value))
          for (const auto& [attribute, number] : value.items()) names.insert(attribute);
        else if (!value.is_null())
          names.insert(name);
      }
    for (json& row : rows) {
      const auto& kept = own[id_text(row.value("category", json()))];
      json values = json::object();
      for (const auto& [name, value] : row.items())
        if (name != "id" && name != "category" && kept.contains(name)) values[name] = value;
      json document{{"id", row.value("id", json())},
                    {"category", row.value("category", json())},
                    {"values", std::move(values)}};
      for (const char* key : kNumbers)
        if (row.contains(key) && is_about(key, row[key])) document[key] = std::move(row[key]);
      add_row(document);
    }
  }

  void add_row(const json& row) {
    if (row.contains("qid") && row.contains("best_span_str")) return add_dialog(row);
    const std::string id = id_text(row.value("id", json()));
    if (id.empty()) refuse("{}: the row has no \"id\"; {}", place_, kForms);
    if (const auto values = row.find("values"); values != row.end()) {
      if (!values->is_object()) refuse("{}: \"values\" must be an object of attributes", place_);
      const std::string key = add(id, *values, true);
      for (const auto& [name, value] : values->items()) predictions_.attributes.insert(name);
      if (const auto category = row.find("category"); category != row.end() && category->is_string())
        predictions_.categories.emplace(key, valid_utf8(category->get_ref<const std::string&>()));
      if (const auto notes = row.find("notes"); notes != row.end() && notes->is_object())
        for (const auto& [name, note] : notes->items()) predictions_.noted[key].push_back(name);
      add_numbers(row, key, kNumbers[0], predictions_.confidence);
      if (const auto numbers = predictions_.confidence.find(key); numbers != predictions_.confidence.end())
        for (const auto& [name, number] : numbers->second.items()) check_share(number);
      add_numbers(row, key, kNumbers[1], predictions_.null_margins);
    } else if (const auto answers = row.find("answers"); answers != row.end()) {
      if (!answers->is_array()) refuse("{}: \"answers\" must be a list of {{\"id\", \"answer\"}}", place_);
      for (size_t i = 0; i < answers->size(); ++i) {
        const json& answer = (*answers)[i];
        if (!answer.is_object() || !answer.contains("answer"))
          refuse("{}: answer {} is not {{\"id\", \"answer\"}}; {}", place_, i + 1, kForms);
        const std::string own = id_text(answer.value("id", json()));
        add(own.empty() ? fmt::format("{}/{}", id, i) : own, answer, false);
      }
    } else if (row.contains("answer")) {
      add(id, row, false);
    } else if (row.contains("predicted_answer")) {  // MuSiQue's
      add(id, {{"answer", row["predicted_answer"]}}, false);
    } else {
      refuse("{}: the row has none of \"answer\", \"answers\" and \"values\"; {}", place_, kForms);
    }
  }

  /// What the row says of its attributes under `what`.
  void add_numbers(const json& row, const std::string& key, const char* what,
                   std::unordered_map<std::string, json>& numbers) const {
    const auto given = row.find(what);
    if (given == row.end() || given->is_null()) return;
    if (!given->is_object()) refuse("{}: \"{}\" must be an object {{attribute: number}}", place_, what);
    for (const auto& [name, number] : given->items())
      if (!number.is_null() && !number.is_number())
        refuse("{}: \"{}\" of {} is not a number", place_, what, shown(name));
    numbers.emplace(key, *given);
  }

  void check_share(const json& confidence) const {
    if (confidence.is_null()) return;
    if (!confidence.is_number() || !(confidence.get<double>() >= 0) || !(confidence.get<double>() <= 1))
      refuse("{}: \"confidence\" must be a number from 0 to 1, not {}", place_, shown(confidence.dump()));
  }

  void add_dialog(const json& row) {
    const json &ids = row["qid"], &spans = row["best_span_str"];
    if (!ids.is_array() || !spans.is_array() || ids.size() != spans.size())
      refuse("{}: \"qid\" and \"best_span_str\" must be lists of the same length", place_);
    for (size_t i = 0; i < ids.size(); ++i) {
      json prediction{{"answer", spans[i]}};
      for (const char* act : {"yesno", "followup"})
        if (const auto said = row.find(act); said != row.end()) {
          if (!said->is_array() || said->size() != ids.size())
            refuse("{}: \"{}\" must be a list as long as \"qid\"", place_, act);
          prediction[act] = (*said)[i];
        }
      add(id_text(ids[i]), std::move(prediction), false);
    }
  }

  static bool is_kept(const std::string& key) {
    return key == "answer" || key == "option" || key == "yesno" || key == "followup" || key == "confidence" ||
           key == "null_margin";
  }

  /// Returns the key under which the row is kept.
  std::string add(const std::string& id, json prediction, bool document) {
    if (!predictions_.ids.empty() && document != predictions_.documents)
      refuse("{}: the file mixes rows of an extract job with answers to questions", place_);
    predictions_.documents = document;
    if (!document) {
      if (const auto confidence = prediction.find("confidence"); confidence != prediction.end())
        check_share(*confidence);
      for (auto key = prediction.begin(); key != prediction.end();)
        key = is_kept(key.key()) ? std::next(key) : prediction.erase(key);
    }
    if (predictions_.by_id.contains(id)) {
      int64_t& rows = predictions_.repeated.try_emplace(id, 1).first->second;
      std::string key = row_key(id, rows++);
      predictions_.by_id.emplace(key, std::move(prediction));
      return key;
    }
    predictions_.by_id.emplace(id, std::move(prediction));
    predictions_.ids.push_back(id);
    return id;
  }

  Predictions predictions_;
  std::string place_;
};

std::vector<std::string> rows_files(const std::string& folder) {
  std::vector<std::string> files;
  for (const std::string& file :
       expand_corpus_path(folder))  // its folders' files too, which are not of the run
    if (fs::path(file).lexically_relative(folder).string().starts_with("rows-")) files.push_back(file);
  if (files.empty())
    refuse("{}: the folder has no rows-*.jsonl, rows-*.parquet or rows-*.arrow; {}", folder, kForms);
  return files;
}

}  // namespace

Predictions read_predictions(const std::string& path) {
  PredictionReader reader(path);
  std::error_code ignored;
  if (fs::is_regular_file(path, ignored) && path.ends_with(".json")) {
    reader.read_object(path);
    return std::move(reader).take();
  }
  const std::vector<std::string> files =
      fs::is_directory(path, ignored) || (is_uri(path) && corpus_format(path) == CorpusFormat::unknown)
          ? rows_files(path)
          : expand_corpus_path(path);
  if (files.empty()) refuse("{}: no such file; {}", path, kForms);
  for (const std::string& file : files) {
    const CorpusFormat format = corpus_format(file);
    if (format != CorpusFormat::jsonl && format != CorpusFormat::table)
      refuse("{}: this is not a file of predictions; {}", file, kForms);
    format == CorpusFormat::table ? reader.read_table(file) : reader.read_lines(file);
  }
  return std::move(reader).take();
}

std::string row_key(const std::string& id, int64_t number) {
  // A control character, which ids do not hold.
  return number == 0 ? id : fmt::format("{}\x1e{}", id, number + 1);
}

int64_t rows_of(const Predictions& predictions, const std::string& id) {
  if (!predictions.by_id.contains(id)) return 0;
  const auto repeated = predictions.repeated.find(id);
  return repeated == predictions.repeated.end() ? 1 : repeated->second;
}

namespace {

/// Numbers as answer_texts() writes them: 7 for 7.0, as Parquet has it.
json short_numbers(const json& value) {
  if (value.is_number_float()) {
    const double number = value.get<double>();
    const bool whole = std::abs(number) < 9e15 && number == std::floor(number);
    return whole ? json(static_cast<int64_t>(number)) : value;
  }
  if (!value.is_structured()) return value;
  json same = value;
  for (json& part : same) part = short_numbers(part);
  return same;
}

}  // namespace

std::vector<std::string> answer_texts(const json& answer) {
  if (answer.is_null()) return {};
  if (answer.is_string()) return {valid_utf8(answer.get_ref<const std::string&>())};
  if (answer.is_number_float())
    return {fmt::format("{}", answer.get<double>())};  // 7 for 7.0, as Parquet has it
  if (answer.is_object()) return {short_numbers(answer).dump(-1, ' ', false, json::error_handler_t::replace)};
  if (!answer.is_array()) return {answer.dump()};
  std::vector<std::string> texts;
  for (const json& part : answer)
    for (std::string& text : answer_texts(part)) texts.push_back(std::move(text));
  return texts;
}

std::string id_text(const json& id) {
  if (id.is_null()) return {};
  return id.is_string() ? id.get<std::string>() : id.dump();
}

}  // namespace sheaf
