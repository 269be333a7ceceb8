#include "io/run_folder/manifest.h"

#include "core/base/error.h"
#include "core/job/words.h"
#include "core/report/report.h"
#include "core/text/json_reader.h"
#include "core/text/utf8.h"
#include "io/base/file_layer.h"
#include "io/base/sha256.h"

namespace sheaf {
namespace {

using nlohmann::ordered_json;

constexpr int kVersion = 1;
constexpr int64_t kMostCounted = int64_t{1} << 50;  // sums of all files of all shards stay in 64 bits
constexpr int64_t kMostBytes = int64_t{1} << 30;    // its fingerprint has an entry for every corpus file

/// Reads one file's JSON, member by member.
class ManifestReader {
 public:
  ManifestReader(const std::string& path, const std::string& mend) : path_(path), mend_(mend) {}

  Manifest read(const std::string& text) const {
    std::string trouble;
    ordered_json json = read_json<ordered_json>(text, {}, &trouble);
    if (!trouble.empty()) reject(trouble);
    Manifest manifest;
    try {
      if (json.at("manifest") != kVersion) reject("it has another version");
      manifest.rows = count_of(json, "rows");
      manifest.rejects = count_of(json, "rejects");
      // Earlier versions wrote corpus_rows.
      const ordered_json& records = json.at(json.contains("corpus_rows") ? "corpus_rows" : "records");
      manifest.first = count_of(records, "first");
      manifest.end = count_of(records, "end");
      for (const ordered_json& file : json.at("files"))
        manifest.files.push_back({file.at("name").get<std::string>(), count_of(file, "rows"),
                                  count_of(file, "bytes"), file.at("sha256").get<std::string>()});
      manifest.fingerprint = std::move(json.at("fingerprint"));
      if (const auto sources = json.find("sources"); sources != json.end())  // not in earlier versions
        manifest.sources = {sources->at("input").get<std::string>(),
                            sources->at("schema").get<std::string>()};
    } catch (const ordered_json::exception&) {
      reject("a key is missing or has the wrong type");
    }
    if (!manifest.fingerprint.is_object()) reject("fingerprint is not an object");
    if (json.value("fingerprint_sha256", ordered_json()) != sha256(manifest.fingerprint.dump()))
      reject("its fingerprint was changed");
    check_files(manifest);
    return manifest;
  }

 private:
  [[noreturn]] void reject(std::string_view why) const {
    refuse("{}: this is not a manifest written by sheaf: {}; {}", path_, why, mend_);
  }

  /// Rows files numbered from 0, the rejects last, and totals that are theirs.
  void check_files(const Manifest& manifest) const {
    if (manifest.files.size() < 2 || manifest.files.back().name != "rejects.jsonl")
      reject("its list of files is not that of a run");
    int64_t rows = 0;
    for (size_t i = 0; i + 1 < manifest.files.size(); ++i) {
      const PublishedFile& file = manifest.files[i];
      if (!is_rows_name(file.name) || !file.name.starts_with(fmt::format("rows-{:05}.", i)))
        reject(fmt::format("it lists {} instead of rows file {}", file.name, i));
      rows += file.rows;
    }
    if (rows != manifest.rows || manifest.files.back().rows != manifest.rejects)
      reject("its totals do not match its files");
  }

  int64_t count_of(const ordered_json& from, const char* key) const {
    const ordered_json& value = from.at(key);
    if (!value.is_number_integer() || value < 0 || value > kMostCounted)
      reject(fmt::format("{} is not a count", key));
    return value.get<int64_t>();
  }

  const std::string &path_, &mend_;
};

}  // namespace

void check_bytes(const std::string& path, const PublishedFile& file) {
  const auto bytes = file_size(path);
  if (bytes == file.bytes || (file.name.ends_with(".part") && bytes > file.bytes)) return;
  refuse("{}: the file is missing or does not have its {} bytes; {}", path, file.bytes, kRestart);
}

bool is_rows_name(std::string_view name) {
  if (!name.starts_with("rows-")) return false;
  name.remove_prefix(5);
  const size_t digits = name.find_first_not_of("0123456789");
  return digits >= 5 && digits < 18 && std::ranges::count(kRowsEndings, name.substr(digits)) > 0;
}

bool is_run_file(std::string_view name) {
  if (name.ends_with(".part")) name.remove_suffix(5);
  for (const std::string_view own :
       {"journal", "rejects.jsonl", "errors.jsonl", "manifest.json", "report.json", "report.html",
        "progress.json", "answers.log", "answers.table", "answers.json", "_SUCCESS"})
    if (name == own) return true;
  return is_rows_name(name);
}

ordered_json sources_json(const RunSources& sources) {
  return {{"input", valid_utf8(sources.input)}, {"schema", valid_utf8(sources.schema)}};
}

ordered_json manifest_json(const Manifest& manifest) {
  ordered_json files = ordered_json::array();
  for (const PublishedFile& file : manifest.files)
    files.push_back(
        {{"name", file.name}, {"rows", file.rows}, {"bytes", file.bytes}, {"sha256", file.sha256}});
  return {{"manifest", kVersion},
          {"rows", manifest.rows},
          {"rejects", manifest.rejects},
          {"records", {{"first", manifest.first}, {"end", manifest.end}}},
          {"files", std::move(files)},
          {"sources", sources_json(manifest.sources)},
          {"fingerprint_sha256", sha256(manifest.fingerprint.dump())},
          {"fingerprint", manifest.fingerprint}};
}

Manifest parse_manifest(const std::string& text, const std::string& path, const std::string& mend) {
  return ManifestReader(path, mend).read(text);
}

Manifest read_manifest(const std::string& folder, const std::string& mend) {
  const std::string path = folder + "/manifest.json";
  const auto text = read_whole(path, kMostBytes);
  if (!text) refuse("{}: the file is missing; {}", path, mend);
  return parse_manifest(*text, path, mend);
}

ordered_json read_report_file(const std::string& path) {
  const auto text = read_whole(path);
  if (!text) refuse("{}: no such file", path);
  return read_report(*text, path);
}

}  // namespace sheaf
