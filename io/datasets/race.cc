#include <filesystem>

#include "io/base/file_layer.h"
#include "io/datasets/readers.h"

// RACE: a folder of files, each {"id": "high132.txt", "article", "questions": [text], "options": [[four
// texts]], "answers": ["C"]}; files of middle and high school stand in folders of these names.

namespace sheaf {
namespace {

namespace fs = std::filesystem;

constexpr int kProbedFiles = 100;
constexpr int64_t kLargestPassage = 16 << 20;

ordered_json question_of(const ordered_json& source, size_t i, const std::string& id) {
  const ordered_json& questions = list_field(source, "questions");
  const ordered_json& options = list_field(source, "options")[i];
  if (!questions[i].is_string()) reject("question {} is not text", i + 1);
  if (!options.is_array() || options.empty() || options.size() > 26)
    reject("the options of question {} must be a list of 1 to 26 texts", i + 1);
  ordered_json question{{"id", fmt::format("{}/{}", id, i)},
                        {"question", trimmed(questions[i].get<std::string>())}};
  question["options"] = ordered_json::array();
  for (const ordered_json& option : options) {
    if (!option.is_string()) reject("an option of question {} is not text", i + 1);
    question["options"].push_back(trimmed(option.get<std::string>()));
  }
  if (source.contains("answers")) {
    const ordered_json& answer = list_field(source, "answers")[i];
    if (!answer.is_string() || answer.get_ref<const std::string&>().size() != 1 ||
        answer.get_ref<const std::string&>()[0] < 'A' ||
        answer.get_ref<const std::string&>() > option_letter(options.size() - 1))
      reject("the answer to question {} is not the letter of an option", i + 1);
    question["answers"] = {answer};
  }
  return question;
}

ordered_json passage_of(const ordered_json& source, const std::string& file) {
  std::string level = fs::path(file).parent_path().filename().string();
  const std::string id = source.is_object() && source.contains("id")
                             ? text_field(source, "id")
                             : level + "/" + fs::path(file).filename().string();
  for (const char* name : {"middle", "high"})
    if (id.starts_with(name)) level = name;
  ordered_json row{{"id", id}, {"context", text_field(source, "article")}};
  const size_t count = list_field(source, "questions").size();
  for (const char* key : {"options", "answers"})
    if (std::string_view(key) == "options" || source.contains(key))
      if (const size_t other = list_field(source, key).size(); other != count)
        reject("the entry has {} questions but {} {}", count, other, key);
  ordered_json& questions = row["questions"] = ordered_json::array();
  for (size_t i = 0; i < count; ++i) {
    questions.push_back(question_of(source, i, id));
    questions.back()["extra"] = {{"level", level}};
  }
  return row;
}

std::unique_ptr<DatasetReader> passages_reader(const std::string& path,
                                               const std::vector<std::string>& files) {
  std::vector<WholeEntry> entries;
  for (const std::string& file : files) entries.push_back({{}, {}, nullptr, {}, file});
  return whole_file_reader(path, {}, std::move(entries), [](const WholeEntry& entry) {
    return passage_of(parse_entry(read_passage(entry.file)), entry.file);
  });
}

}  // namespace

std::string read_passage(const std::string& file) {
  const auto size = file_size(file);
  if (size && *size > kLargestPassage) reject("the file has more than {} MB", kLargestPassage >> 20);
  const auto text = read_whole(file);
  if (!text) reject("the file cannot be read");
  return *text;
}

bool is_race_passage(const ordered_json& file) {
  return file.is_object() && file.contains("article") && has_list(file, "questions") &&
         has_list(file, "options");
}

std::unique_ptr<DatasetReader> open_race(const DatasetPlace& at) {
  const auto probe = passages_reader(at.path, at.files);
  bool found = false;
  for (int i = 0; i < kProbedFiles && !found; ++i) {
    const auto row = probe->next();
    if (!row) break;
    found = row->error.empty();
  }
  const bool folder = fs::is_directory(at.path);
  if (!found)
    refuse("{}: this is not a RACE {}: it has no \"article\" with \"questions\" and \"options\"{}", at.path,
           folder ? "folder" : "file", folder ? " in its .txt files" : "");
  return passages_reader(at.path, at.files);
}

}  // namespace sheaf
