#include "io/datasets/recognize.h"

#include <filesystem>

#include "core/base/error.h"
#include "io/base/globs.h"
#include "io/base/line_reader.h"
#include "io/datasets/dataset.h"
#include "io/datasets/entry.h"
#include "io/datasets/readers.h"

namespace sheaf {
namespace {

namespace fs = std::filesystem;
using nlohmann::ordered_json;

constexpr int kLinesToTry = 100;
constexpr size_t kFilesToTry = 20;

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
  return recognize_file(line);
}

/// By the first line that is JSON.
std::string recognize_lines(const std::string& path) {
  LineReader lines(path);
  for (int i = 0; i < kLinesToTry; ++i) {
    const auto line = lines.next();
    if (!line) break;
    try {
      const ordered_json row = parse_entry(line->text);
      if (row.is_object()) return recognize_line(row);
    } catch (const BadEntry&) {
      continue;
    }
  }
  return {};
}

std::string recognize_folder(const std::string& path) {
  if (fs::exists(fs::path(path) / "qaps.csv")) return "narrativeqa";
  const std::vector<std::string> files = text_files_below(path);
  for (size_t i = 0; i < std::min(files.size(), kFilesToTry); ++i) {
    try {
      if (is_race_passage(parse_entry(read_passage(files[i])))) return "race";
    } catch (const BadEntry&) {
      continue;
    }
  }
  return {};
}

}  // namespace

std::optional<bool> asks_in_dialogs(const ordered_json& file) {
  for (const ordered_json& article : file["data"]) {
    if (!has_list(article, "paragraphs")) continue;
    for (const ordered_json& paragraph : article["paragraphs"]) {
      if (!has_list(paragraph, "qas")) continue;
      for (const ordered_json& qa : paragraph["qas"])
        if (qa.is_object())
          return qa.contains("orig_answer") || qa.contains("followup") || qa.contains("yesno");
    }
  }
  return std::nullopt;
}

std::string guess_dataset_format(const std::string& path) {
  std::error_code ignored;
  if (fs::is_directory(path, ignored)) return recognize_folder(path);
  if (!fs::exists(path, ignored)) refuse("{}: no such file or folder", path);
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
