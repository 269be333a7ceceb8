#pragma once
#include <string>
#include <vector>

namespace sheaf {

/// The files a corpus path names, sorted by name: a file, a folder (those of its files whose names end as
/// corpus_format() knows them), a glob (* ? [a-z]) or the URI of one of these. Empty where nothing matches.
/// Refuses folders and files that it may not look at, and links that lead nowhere.
std::vector<std::string> expand_corpus_path(const std::string& path, const std::string& where = {});

/// Whether a path may be a glob.
bool has_wildcard(const std::string& path);

enum class CorpusFormat {
  unknown,
  jsonl,
  csv,
  table,  ///< Parquet or Arrow, which TableFile tells apart
  dataset
};

/// Whether a look through a folder leaves out entries of that name: hidden ones, and those of the program
/// that wrote the folder (_SUCCESS, _temporary).
bool is_passed_over(const std::string& name);
/// The folder and those in it that are looked through for corpus files.
std::vector<std::string> corpus_folders(const std::string& path);

/// The folder, with a `/` at its end, that all files of a corpus are in; empty where there is none. What
/// follows it names a file wherever the corpus is read from.
std::string common_folder(const std::vector<std::string>& files);

/// By the ending of the name: .parquet, .arrow, .jsonl, .ndjson, .csv or .tsv; text files may be compressed
/// (.gz, .zst).
CorpusFormat corpus_format(const std::string& path);

/// The files of a corpus and their one format.
struct CorpusFiles {
  std::vector<std::string> files;
  CorpusFormat format = CorpusFormat::unknown;
};
/// The one format of files: as `format` says, or with auto as their names end. Refuses an unknown ending and
/// a mix; `where` begins the message.
CorpusFormat format_of_files(const std::vector<std::string>& files, const std::string& format,
                             const std::string& where = {});
/// Finds the files of JSON lines, CSV or Parquet: `format` is auto, jsonl, csv or parquet; "-" stands for
/// standard input, which is JSON lines or CSV. Refuses a path that names no file, an unknown ending and a mix
/// of formats; `where`
/// ("job.yaml:3: ") begins the message.
CorpusFiles find_table_files(const std::string& path, const std::string& format,
                             const std::string& where = {});

}  // namespace sheaf
