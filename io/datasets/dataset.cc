#include "io/datasets/dataset.h"

#include <algorithm>
#include <random>

#include "core/task/own_prompt.h"
#include "core/text/spelling.h"
#include "io/base/foreign_files.h"
#include "io/base/globs.h"
#include "io/base/line_reader.h"
#include "io/base/paths.h"
#include "io/datasets/readers.h"

namespace sheaf {
namespace {

namespace fs = std::filesystem;

constexpr int kLinesToTry = 100;
constexpr size_t kFilesToTry = 20;

std::vector<std::string> narrativeqa_files(const std::string& path, const std::string& where) {
  const fs::path folder = is_folder(path) ? fs::path(path) : fs::path(path).parent_path();
  const fs::path qaps = is_folder(path) ? folder / "qaps.csv" : fs::path(path);
  if (!is_there(qaps))
    refuse("{}{}: the folder has no qaps.csv; name the folder of NarrativeQA", where, path);
  for (const fs::path& summaries : {folder / "summaries.csv", folder / "third_party/wikipedia/summaries.csv"})
    if (is_there(summaries)) return {qaps.string(), summaries.string()};
  refuse("{}{}: the folder has no summaries.csv, neither beside qaps.csv nor in third_party/wikipedia", where,
         path);
}

/// Every .txt file in the folder and those below it, sorted.
std::vector<std::string> text_files_below(const std::string& folder) {
  std::vector<std::string> files;
  std::error_code error;
  fs::recursive_directory_iterator entry(folder, error), end;
  for (; !error && entry != end; entry.increment(error))
    if (entry->path().extension() == ".txt" && !is_folder(entry->path()))
      files.push_back(entry->path().string());
  if (error) refuse("{}: the folder cannot be read: {}", folder, error.message());
  std::sort(files.begin(), files.end());
  return files;
}

/// The format of a whole JSON value.
std::string recognize_file(const ordered_json& file) {
  if (file.is_array()) return !file.empty() && has_list(file[0], "context") ? "hotpotqa" : "";
  if (!file.is_object() || file.empty()) return {};
  if (has_list(file, "data")) return asks_in_dialogs(file).value_or(false) ? "quac" : "squad";
  if (is_race_passage(file)) return "race";
  for (const auto& [key, value] : file.items()) {
    if (has_list(value, "qa_pairs")) return "drop";
    if (has_list(value, "questions") && value.contains("texts")) return "longhealth";
  }
  return {};
}

std::string recognize_line(const ordered_json& line) {
  if (!line.is_object()) return {};
  if (line.contains("target_scores")) return "oa-mine";
  if (line.contains("paragraphs") && line.contains("question")) return "musique";
  if (line.contains("_id") && has_list(line, "context")) return "hotpotqa";
  if (line.contains("parent_asin")) return "amazon-reviews";
  if (line.contains("qid") && line.contains("query_text")) return "loft";
  if (line.contains("_id") && line.contains("input") && line.contains("all_classes")) return "longbench";
  return recognize_file(line);
}

/// By the first line that is JSON.
std::string recognize_lines(const std::string& path) {
  LineReader lines(path);
  for (int i = 0; i < kLinesToTry; ++i) {
    const auto line = lines.next();
    if (!line) break;
    const auto row = read_json<ordered_json>(line->text);
    if (row.is_object()) return recognize_line(row);
  }
  return {};
}

std::string recognize_folder(const std::string& path) {
  if (is_there(fs::path(path) / "qaps.csv")) return "narrativeqa";
  const std::vector<std::string> files = text_files_below(path);
  for (size_t i = 0; i < std::min(files.size(), kFilesToTry); ++i) {
    try {
      if (is_race_passage(parse_entry(read_passage(files[i])))) return "race";
    } catch (const BadText&) {
      continue;
    }
  }
  return {};
}

/// Empty where no question of the row has an answer.
std::string example_of(const ordered_json& row, const PromptTemplate& example) {
  if (!has_list(row, "questions") || !row.contains("context") || !row["context"].is_string()) return {};
  for (const ordered_json& question : row["questions"]) {
    if (!has_list(question, "answers") || question["answers"].empty()) continue;
    if (!question.contains("question") || !question["question"].is_string()) continue;
    std::vector<std::string> options;
    if (has_list(question, "options"))
      for (const ordered_json& option : question["options"]) options.push_back(option.get<std::string>());
    const auto answer = question["answers"][0].get<std::string>();
    return example.fill([&](std::string_view field) {
      if (field == "document") return row["context"].get<std::string>();
      if (field == "question") return question["question"].get<std::string>();
      if (field == "options") return options_text(options);
      return answer == "CANNOTANSWER" ? "null" : answer;  // QuAC's word for no answer
    });
  }
  return {};
}

}  // namespace

const std::vector<DatasetFormat>& dataset_formats() {
  const char* const extractgpt = "github.com/wbsg-uni-mannheim/ExtractGPT, folder data/processed_datasets";
  static const std::vector<DatasetFormat> formats = {
      {"squad", TaskKind::ask, open_squad, "dev-v2.0.json", "rajpurkar.github.io/SQuAD-explorer"},
      {"race", TaskKind::ask, open_race, "the folder RACE/test", "www.cs.cmu.edu/~glai1/data/race"},
      {"narrativeqa", TaskKind::ask, open_narrativeqa, "the folder with qaps.csv",
       "github.com/google-deepmind/narrativeqa"},
      {"longhealth", TaskKind::ask, open_longhealth, "benchmark_v5.json",
       "github.com/kbressem/LongHealth, folder data"},
      {"quac", TaskKind::ask, open_quac, "val_v0.2.json", "quac.ai"},
      {"drop", TaskKind::ask, open_drop, "drop_dataset_dev.json", "allenai.org/data/drop"},
      {"hotpotqa", TaskKind::ask, open_hotpotqa, "hotpot_dev_distractor_v1.json", "hotpotqa.github.io", true},
      {"musique", TaskKind::ask, open_musique, "musique_ans_v1.0_dev.jsonl",
       "github.com/StonyBrookNLP/musique", true},
      {"loft", TaskKind::ask, open_loft, "test_queries.jsonl of a set in data/rag",
       "github.com/google-deepmind/loft", false, true},
      {"longbench", TaskKind::ask, open_longbench, "hotpotqa.jsonl, qasper.jsonl or another set",
       "huggingface.co/datasets/THUDM/LongBench"},
      {"oa-mine", TaskKind::extract, open_extractgpt, "test.jsonl of ExtractGPT", extractgpt},
      {"ae-110k", TaskKind::extract, open_extractgpt, "test.jsonl of ExtractGPT", extractgpt},
      {.name = "amazon-reviews",
       .task = TaskKind::extract,
       .open = open_amazon_reviews,
       .input = "meta_All_Beauty.jsonl or another category, or its reviews",
       .source = "huggingface.co/datasets/McAuley-Lab/Amazon-Reviews-2023, folder raw",
       .named = true},
  };
  return formats;
}

const DatasetFormat* find_dataset_format(const std::string& name) {
  for (const DatasetFormat& format : dataset_formats())
    if (format.name == name) return &format;
  return nullptr;
}

std::string make_advice(const std::string& path) {
  const std::string name = fs::path(path).stem().string(), ending = fs::path(path).extension().string();
  if (ending != ".parquet" && ending != ".jsonl") return {};
  if (name == "needle")
    return fmt::format(
        "make it from a book as plain text (gutenberg.org/ebooks/2600 is War and Peace) with `sheaf convert "
        "needle BOOK.txt {}` (docs/datasets.md)",
        path);
  const DatasetFormat* format = find_dataset_format(name);
  if (!format) return {};
  return fmt::format("get {} from {} and convert it with `sheaf convert {} IN {}` (docs/datasets.md)",
                     format->input, format->source, name, path);
}

std::string place_text(const DatasetRow& row) {
  if (row.entry.empty()) return fmt::format("{}:{}", row.place.file, row.place.row);
  return fmt::format("{}: {}", row.place.file, row.entry);
}

std::unique_ptr<DatasetReader> open_dataset(const std::string& format, const std::string& path,
                                            const DatasetOptions& options) {
  try {
    std::vector<std::string> files = dataset_files(format, path);
    return find_dataset_format(format)->open({path, std::move(files), options});
  } catch (const Error& error) {
    if (error.fault() != Fault::input) throw;
    const std::string found = find_dataset_format(format) ? likely_format(format, path) : std::string();
    if (found.empty()) throw;
    refuse("{}; it looks like {}", error.what(), found);
  }
}

std::vector<std::string> dataset_files(const std::string& format, const std::string& path,
                                       const std::string& where) {
  if (!find_dataset_format(format)) {
    std::vector<std::string> names;
    for (const DatasetFormat& known : dataset_formats()) names.push_back(known.name);
    refuse("{}unknown dataset format \"{}\"{}", where, shorten_text(format, 60),
           suggest_spelling(format, names));
  }
  if (!is_there(path))
    refuse("{}{}; get {} from {} (docs/datasets.md)", where, describe_missing(path),
           find_dataset_format(format)->input, find_dataset_format(format)->source);
  if (format == "narrativeqa") return narrativeqa_files(path, where);
  if (format == "race" && is_folder(path)) {
    std::vector<std::string> files = text_files_below(path);
    if (files.empty()) refuse("{}{}: no .txt file in this folder or below it", where, path);
    return files;
  }
  if (is_folder(path))
    refuse("{}{}: this is a folder; for {} name the file ({})", where, path, format,
           find_dataset_format(format)->input);
  return {path};
}

std::vector<std::string> few_shot_examples(DatasetReader& dataset, int32_t count,
                                           const PromptTemplate& wording) {
  // A sample in one pass: entry n takes the place of one before it with probability count / n.
  std::vector<std::string> chosen;
  std::mt19937_64 random(1);
  uint64_t seen = 0;
  const auto wanted = static_cast<size_t>(count);
  while (const auto row = dataset.next()) {
    if (!row->error.empty()) continue;
    std::string example = example_of(row->cells, wording);
    if (example.empty()) continue;
    ++seen;
    if (chosen.size() < wanted) {
      chosen.push_back(std::move(example));
    } else if (const uint64_t place = random() % seen; place < wanted) {
      chosen[place] = std::move(example);
    }
  }
  if (chosen.size() < wanted)
    refuse(
        "input.shots: {} examples were asked for, but only {} passages of input.shots_from have a question "
        "with \"answers\"",
        count, chosen.size());
  return chosen;
}

std::string guess_dataset_format(const std::string& path) {
  if (is_folder(path)) return recognize_folder(path);
  if (!is_there(path)) refuse("{}: no such file or folder", path);
  if (fs::path(path).filename() == "qaps.csv") return "narrativeqa";
  const CorpusFormat format = corpus_format(path);
  if (format == CorpusFormat::table || format == CorpusFormat::csv) return {};
  std::string found = recognize_lines(path);
  if (!found.empty() || format == CorpusFormat::jsonl) return found;
  return recognize_file(read_json_dataset(path));
}

std::string likely_format(const std::string& format, const std::string& path) {
  std::string found;
  try {
    found = guess_dataset_format(path);
  } catch (const Error&) {
    return {};  // whatever it is, nothing can read it
  }
  const bool same = found == format || (found == "oa-mine" && format == "ae-110k");
  return same ? std::string() : found == "oa-mine" ? "oa-mine or ae-110k" : found;
}

}  // namespace sheaf
