#include "io/base/globs.h"

#include <algorithm>
#include <cerrno>
#include <glob.h>

#include "core/text/spelling.h"
#include "core/text/utf8.h"
#include "io/base/foreign_files.h"
#include "io/base/line_reader.h"
#include "io/base/paths.h"
#include "io/base/store.h"

namespace sheaf {
namespace {

namespace fs = std::filesystem;

constexpr int kDeepest = 16;

bool is_file(const fs::path& path) {
  return is_there(path) && !is_folder(path);
}

[[noreturn]] void refuse_broken_link(const std::string& path) {
  refuse("{}: this is a broken link; remove it or fix it", path);
}

struct FolderTree {
  std::vector<std::string> files, folders;
};

FolderTree walk_folder(const std::string& folder) {
  FolderTree tree{{}, {folder}};
  std::error_code error;
  fs::recursive_directory_iterator entry(folder, fs::directory_options::follow_directory_symlink, error), end;
  for (; !error && entry != end; entry.increment(error)) {
    const fs::path path = entry->path();
    const std::string name = path.filename().string();
    std::error_code ignored;
    const bool folder_below = entry->is_directory(ignored);
    if (is_passed_over(name)) {
      if (folder_below) entry.disable_recursion_pending();
      continue;
    }
    if (entry.depth() > kDeepest)
      refuse("{}: the folder has folders nested more than {} levels deep; name one of them", folder,
             kDeepest);
    if (folder_below) tree.folders.push_back(path.string());
    if (folder_below || corpus_format(name) == CorpusFormat::unknown) continue;
    if (!is_file(path)) refuse_broken_link(path.string());
    tree.files.push_back(path.string());
  }
  if (error) refuse("{}: the folder cannot be read: {}", folder, error.message());
  return tree;
}

[[noreturn]] void refuse_closed(const std::string& folder) {
  refuse("{}: permission denied; the folder is closed to you", folder);
}

// glob() hands its folders over without a place for the caller's own data.
thread_local std::string closed_folder;

int note_closed(const char* folder, int error) {
  if (error == EACCES) closed_folder = folder;
  return 0;
}

std::vector<std::string> files_of_glob(const std::string& pattern) {
  glob_t found{};
  std::vector<std::string> names;
  closed_folder.clear();
  if (::glob(pattern.c_str(), 0, note_closed, &found) == 0)
    names.assign(found.gl_pathv, found.gl_pathv + found.gl_pathc);
  ::globfree(&found);
  if (!closed_folder.empty()) refuse_closed(closed_folder);
  std::vector<std::string> files;
  for (const std::string& name : names) {
    std::error_code error;
    const fs::file_status status = fs::status(name, error);
    if (error == std::errc::permission_denied) refuse_closed(fs::path(name).parent_path().string());
    if (!fs::exists(status)) refuse_broken_link(name);
    if (!fs::is_directory(status)) files.push_back(name);
  }
  return files;
}

}  // namespace

bool has_wildcard(const std::string& path) {
  return path.find_first_of("*?[") != std::string::npos;
}

bool is_passed_over(const std::string& name) {
  return name.starts_with('.') || name.starts_with('_');
}

std::vector<std::string> corpus_folders(const std::string& path) {
  return walk_folder(path).folders;
}

std::vector<std::string> expand_corpus_path(const std::string& path, const std::string& where) {
  if (is_uri(path)) return list_corpus_uris(path, where);
  if (is_file(path)) return {path};
  std::vector<std::string> files = is_folder(path) ? walk_folder(path).files : files_of_glob(path);
  std::sort(files.begin(), files.end());
  return files;
}

std::string common_folder(const std::vector<std::string>& files) {
  if (files.empty()) return {};
  std::string_view common = files.front();
  for (const std::string& file : files)
    common = common.substr(0, static_cast<size_t>(std::ranges::mismatch(common, file).in1 - common.begin()));
  return std::string(common.substr(0, common.rfind('/') + 1));
}

CorpusFormat corpus_format(const std::string& path) {
  if (const std::string small = small_letters(path); small.ends_with(".parquet") || small.ends_with(".arrow"))
    return CorpusFormat::table;
  const std::string name = unpacked_name(path);
  if (name.ends_with(".jsonl") || name.ends_with(".ndjson")) return CorpusFormat::jsonl;
  return name.ends_with(".csv") || name.ends_with(".tsv") ? CorpusFormat::csv : CorpusFormat::unknown;
}

CorpusFormat format_of_files(const std::vector<std::string>& files, const std::string& format,
                             const std::string& where) {
  if (format == "parquet") return CorpusFormat::table;
  if (format == "csv") return CorpusFormat::csv;
  if (format != "auto" || files.empty() || files.front() == "-") return CorpusFormat::jsonl;
  const CorpusFormat first = corpus_format(files.front());
  for (const std::string& file : files) {
    const CorpusFormat found = corpus_format(file);
    if (found == CorpusFormat::unknown) {
      const std::string convert = convert_advice(file);
      refuse("{}{}: the name ends in none of .jsonl, .csv, .tsv, .parquet and .arrow; {}", where, file,
             !convert.empty() ? convert
             : where.empty()  ? "name a file that does"
                              : "set input.format");
    }
    if (found != first)
      refuse("{}{} and {} have different formats; {}", where, files.front(), file,
             where.empty() ? "name one file" : "name files of one format in input.path, or set input.format");
  }
  return first;
}

namespace {

/// What to do about the files of a folder that has no corpus; empty where nothing is known.
std::string advice_for_folder(const std::string& path) {
  std::error_code ignored;
  std::vector<std::string> files;
  for (const auto& entry : fs::directory_iterator(path, ignored)) files.push_back(entry.path().string());
  std::sort(files.begin(), files.end());
  for (const std::string& file : files)
    if (const std::string advice = convert_advice(file); !advice.empty()) return "; " + advice;
  return {};
}

}  // namespace

CorpusFiles find_table_files(const std::string& path, const std::string& format, const std::string& where) {
  if (path == "-") {
    if (format == "parquet")
      refuse("{}standard input can only be read as JSON lines or CSV; for Parquet, name a file", where);
    return {{path}, format_of_files({path}, format, where)};
  }
  const std::vector<std::string> files = expand_corpus_path(path, where);
  if (files.empty()) {
    std::error_code ignored;
    if (is_folder(path))
      refuse("{}{}: no .jsonl, .csv, .tsv, .parquet or .arrow file in this folder{}", where, path,
             advice_for_folder(path));
    if (is_uri(path))
      refuse("{}{}: no such file, and no .jsonl, .csv, .tsv, .parquet or .arrow file below it", where,
             parse_store_uri(path).name());
    if (has_wildcard(path)) refuse("{}{}: no file matches", where, path);
    refuse("{}{}", where, describe_missing(path));
  }
  return {files, format_of_files(files, format, where)};
}

}  // namespace sheaf
