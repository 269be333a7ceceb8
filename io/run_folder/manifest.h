#pragma once
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace sheaf {

/// What to do about a run folder whose files are not those of its run.
inline constexpr const char* kRestart = "run the job again with --restart";

/// A file of a run folder that will not change any more.
struct PublishedFile {
  std::string name;
  int64_t rows = 0, bytes = 0;
  std::string sha256;
};

/// Where a run found what it read, as its job names it; empty where that is not known. No part of the
/// fingerprint: files may move.
struct RunSources {
  std::string input, schema;
};

/// What manifest.json says of a finished run.
struct Manifest {
  int64_t rows = 0, rejects = 0;
  int64_t first = 0, end = 0;        ///< rows of the corpus, [first, end)
  std::vector<PublishedFile> files;  ///< rows files in input order, rejects.jsonl last
  nlohmann::ordered_json fingerprint;
  RunSources sources = {};
};

/// Refuses a file of a run that is missing or does not have its bytes; one that still grows (.part) may have
/// more.
void check_bytes(const std::string& path, const PublishedFile& file);

/// rows-00000.jsonl, rows-00001.parquet, …
bool is_rows_name(std::string_view name);

/// Whether a run or a merge writes files of that name into its folder; hidden ones aside.
bool is_run_file(std::string_view name);

nlohmann::ordered_json sources_json(const RunSources& sources);
nlohmann::ordered_json manifest_json(const Manifest& manifest);

/// Refuses a text that was not written by manifest_json(), naming its `path`; `mend` says what to do.
Manifest parse_manifest(const std::string& text, const std::string& path, const std::string& mend);
/// Reads the manifest of a folder; refuses one that is missing or damaged.
Manifest read_manifest(const std::string& folder, const std::string& mend);

/// The whole report in a report.json; refuses anything else, naming the file.
nlohmann::ordered_json read_report_file(const std::string& path);

}  // namespace sheaf
