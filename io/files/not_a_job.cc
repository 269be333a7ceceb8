#include <algorithm>
#include <fcntl.h>
#include <filesystem>
#include <initializer_list>
#include <string_view>
#include <vector>

#include "core/base/error.h"
#include "io/base/descriptor.h"
#include "io/base/foreign_files.h"
#include "io/base/globs.h"
#include "io/files/job_file.h"

namespace sheaf {
namespace {

namespace fs = std::filesystem;

/// Names of the files in a folder, sorted.
std::vector<std::string> names_in(const std::string& folder) {
  std::vector<std::string> names;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(folder, ignored))
    names.push_back(entry.path().filename().string());
  std::ranges::sort(names);
  return names;
}

std::vector<std::string> ending_in(const std::vector<std::string>& names,
                                   std::initializer_list<std::string_view> endings) {
  std::vector<std::string> some;
  for (const std::string& name : names)
    if (std::ranges::any_of(endings, [&](std::string_view ending) { return name.ends_with(ending); }))
      some.push_back(name);
  return some;
}

std::string key_advice(std::string_view key, const std::string& path) {
  return fmt::format("set {} in a job file to it, or give it with --set {}={}", key, key, path);
}

[[noreturn]] void refuse_file(const std::string& path, std::string_view what, const std::string& advice) {
  refuse("{}: this is {}, not a job file; {}", path, what, advice);
}

[[noreturn]] void refuse_folder(const std::string& path) {
  const std::vector<std::string> names = names_in(path);
  const auto has = [&](std::string_view name) { return std::ranges::find(names, name) != names.end(); };
  if (has("journal") || has("manifest.json"))
    refuse(
        "{0}: this is the folder of a run, not a job file; `sheaf report {0}` sums it up, `sheaf show {0}` "
        "shows its rows",
        path);
  if (has("adapter_config.json"))
    refuse_file(path, "the folder of an adapter", key_advice("model.adapter", path));
  const bool weights = !ending_in(names, {".safetensors", ".gguf"}).empty();
  if (has("config.json") || has("tokenizer.json"))
    refuse_file(path, "the folder of a model", key_advice("model.path", path));
  if (const std::vector<std::string> jobs = ending_in(names, {".yaml", ".yml"}); !jobs.empty())
    refuse("{}: this is a folder; name a job file in it, such as {}", path,
           (fs::path(path) / jobs.front()).string());
  if (weights) refuse_file(path, "a folder of models", key_advice("model.path", path + "/NAME"));
  if (!ending_in(names, {".jsonl", ".ndjson", ".parquet", ".jsonl.gz", ".jsonl.zst"}).empty())
    refuse_file(path, "the folder of a corpus", key_advice("input.path", path));
  refuse("{}: this is a folder; name a job file", path);
}

/// Of a regular file: a pipe can be read only once.
std::string first_bytes(const std::string& path) {
  std::error_code ignored;
  if (!fs::is_regular_file(path, ignored)) return {};
  const Descriptor file = open_regular(path, O_RDONLY);
  std::string bytes(4, '\0');
  const int64_t count = file.number() < 0 ? 0 : read_at(file.number(), 0, bytes.data(), 4);
  bytes.resize(static_cast<size_t>(std::max<int64_t>(0, count)));
  return bytes;
}

}  // namespace

void check_is_job(const std::string& path) {
  std::error_code ignored;
  if (fs::is_directory(path, ignored)) refuse_folder(path);
  if (!fs::exists(path, ignored)) return;
  const std::string first = first_bytes(path);
  if (first == "GGUF" || path.ends_with(".safetensors"))
    refuse_file(path, "a model", key_advice("model.path", path));
  if (first == "PAR1" || corpus_format(path) != CorpusFormat::unknown)
    refuse("{0}: this is a corpus, not a job file; {1}; `sheaf inspect {0}` shows its columns", path,
           key_advice("input.path", path));
  for (const std::string_view ending : {".csv", ".tsv", ".xlsx", ".xls"})
    if (path.ends_with(ending))
      refuse("{}: this is a table, not a job file; {}; then name the new file as input.path in a job", path,
             convert_advice(path));
}

void check_is_job(const std::string& path, const YamlNode& root) {
  const auto has = [&](std::string_view key) {
    return std::ranges::find(root.entries, key, &YamlNode::Entry::key) != root.entries.end();
  };
  if (root.kind != YamlNode::Kind::map || has("model") || has("input") || has("task")) return;
  std::string folder = fs::path(path).parent_path().string();
  if (folder.empty()) folder = ".";
  if (has("datasets") && has("methods"))
    refuse("{0}: this is an evaluation, not a job; use `sheaf eval {0}`", path);
  if (has("attributes") || has("categories") || has("properties") || has("$schema"))
    refuse("{}: this is a schema, not a job; {}", path, key_advice("task.schema", path));
  if (has("peft_type"))
    refuse("{}: this is the configuration of an adapter, not a job; {}", path,
           key_advice("model.adapter", folder));
  if (has("architectures") || has("model_type") || has("added_tokens"))
    refuse("{}: this is a file of a model, not a job; {}", path, key_advice("model.path", folder));
  if (has("hardware"))
    refuse("{0}: this is a list of machines, not a job; use `sheaf estimate JOB --hardware-file {0}`", path);
  if (has("user_open"))
    refuse("{}: this is a chat template, not a job; {}", path, key_advice("model.chat", path));
}

}  // namespace sheaf
