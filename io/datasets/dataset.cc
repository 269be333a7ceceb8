#include "io/datasets/dataset.h"

#include <algorithm>
#include <filesystem>

#include "core/base/error.h"
#include "core/text/spelling.h"
#include "io/base/foreign_files.h"
#include "io/datasets/readers.h"
#include "io/datasets/recognize.h"

namespace sheaf {
namespace {

namespace fs = std::filesystem;

bool is_there(const fs::path& path) {
  std::error_code ignored;
  return fs::exists(path, ignored);
}

bool is_folder(const fs::path& path) {
  std::error_code ignored;
  return fs::is_directory(path, ignored);
}

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

std::unique_ptr<DatasetReader> open_reader(const std::string& format, const std::string& path,
                                           const DatasetOptions& options) {
  std::vector<std::string> files = dataset_files(format, path);
  if (format == "squad") return open_squad(path);
  if (format == "quac") return open_quac(path, options.turns);
  if (format == "drop") return open_drop(path);
  if (format == "longhealth") return open_longhealth(path);
  if (format == "race") return open_race(path, std::move(files));
  if (format == "narrativeqa") return open_narrativeqa(files[0], files[1], options.split);
  if (format == "hotpotqa") return open_hotpotqa(path);
  if (format == "musique") return open_musique(path);
  return open_extractgpt(path);
}

}  // namespace

const std::vector<DatasetFormat>& dataset_formats() {
  const char* const extractgpt = "github.com/wbsg-uni-mannheim/ExtractGPT, folder data/processed_datasets";
  static const std::vector<DatasetFormat> formats = {
      {"squad", TaskKind::ask, "dev-v2.0.json", "rajpurkar.github.io/SQuAD-explorer"},
      {"race", TaskKind::ask, "the folder RACE/test", "www.cs.cmu.edu/~glai1/data/race"},
      {"narrativeqa", TaskKind::ask, "the folder with qaps.csv", "github.com/google-deepmind/narrativeqa"},
      {"longhealth", TaskKind::ask, "benchmark_v5.json", "github.com/kbressem/LongHealth, folder data"},
      {"quac", TaskKind::ask, "val_v0.2.json", "quac.ai"},
      {"drop", TaskKind::ask, "drop_dataset_dev.json", "allenai.org/data/drop"},
      {"hotpotqa", TaskKind::ask, "hotpot_dev_distractor_v1.json", "hotpotqa.github.io", true},
      {"musique", TaskKind::ask, "musique_ans_v1.0_dev.jsonl", "github.com/StonyBrookNLP/musique", true},
      {"oa-mine", TaskKind::extract, "test.jsonl of ExtractGPT", extractgpt},
      {"ae-110k", TaskKind::extract, "test.jsonl of ExtractGPT", extractgpt},
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
    return open_reader(format, path, options);
  } catch (const Error& error) {
    if (error.fault() != Fault::input) throw;
    const std::string found = find_dataset_format(format) ? likely_format(format, path) : std::string();
    if (found.empty()) throw;
    refuse("{}; it looks like {}", error.what(), found);
  }
}

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

}  // namespace sheaf
