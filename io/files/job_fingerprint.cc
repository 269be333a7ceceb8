#include "io/files/job_fingerprint.h"

#include <algorithm>
#include <filesystem>
#include <fmt/format.h>

#include "core/text/printable.h"
#include "io/base/file_identity.h"
#include "io/base/store.h"
#include "io/base/table_stream.h"
#include "io/corpus/corpus.h"
#include "io/files/job_keys.h"
#include "io/passages/build_index.h"

namespace sheaf {
namespace {

namespace fs = std::filesystem;
using nlohmann::ordered_json;

ordered_json file_fingerprint(const std::string& path, Look look) {
  return identity_json(identify_file(path, look));
}

/// The files beside a model that decide what it does: weights, configuration and tokenizer.
bool belongs_to_model(const fs::path& path) {
  static const std::vector<std::string> endings = {".gguf",  ".safetensors", ".json",    ".model",
                                                   ".jinja", ".txt",         ".tiktoken"};
  return std::find(endings.begin(), endings.end(), path.extension().string()) != endings.end();
}

ordered_json model_files(const std::string& path) {
  if (path.empty()) return nullptr;
  ordered_json files = ordered_json::object();
  for (const std::string& file : find_model_files(path))
    files[printable_line(fs::path(file).filename().string())] = file_fingerprint(file, Look::every_byte);
  return files;
}

ordered_json examples_fingerprint(const Job::Task::Examples& examples) {
  ordered_json prints = ordered_json::object();
  std::error_code ignored;
  const bool many = fs::is_directory(examples.path, ignored);
  const std::vector<std::string> files =
      many ? find_table_files(examples.path, "auto").files : std::vector{examples.path};
  const size_t folder = common_folder(files).size();
  for (const std::string& file : files)
    prints[printable_line(file.substr(folder))] = file_fingerprint(file, Look::samples);
  return prints;
}

}  // namespace

std::vector<std::string> find_model_files(const std::string& path) {
  const bool folder = fs::is_directory(path), alone = fs::path(path).extension() == ".gguf";
  std::vector<std::string> found;
  if (!folder) found.push_back(path);
  // A safetensors file has its configuration and tokenizer beside it.
  if (folder || !alone)
    for (const auto& entry :
         fs::directory_iterator(folder ? fs::path(path) : fs::path(path).parent_path() / "."))
      if (entry.is_regular_file() && belongs_to_model(entry.path()) &&
          (folder || entry.path().extension() != ".safetensors"))
        found.push_back(entry.path().string());
  std::ranges::sort(found);
  return found;
}

ordered_json model_fingerprint(const Job::ModelPart& model) {
  return {{"model", model_files(model.path)}, {"adapter", model_files(model.adapter)}};
}

ordered_json corpus_fingerprint(const Job::Input& input) {
  // Added at the end without a look for an equal key, which would take a hundred thousand files hours.
  ordered_json::object_t corpus;
  if (input.table) {
    if (!input.standard_input.sha256.empty())
      corpus.emplace_back(input.table->name(), ordered_json{{"bytes", input.standard_input.bytes},
                                                            {"sha256", input.standard_input.sha256}});
    return corpus;
  }
  const std::vector<std::string> files = find_corpus_files(input, "input.path: ").files;
  const size_t folder = common_folder(files).size();
  const auto add = [&](const std::string& file, ordered_json about) {
    corpus.emplace_back(printable_line(file.substr(folder)), std::move(about));
  };
  if (is_uri(input.path)) {
    const std::vector<FileIdentity> objects = identify_objects(files);
    for (size_t i = 0; i < files.size(); ++i) add(files[i], identity_json(objects[i]));
    return corpus;
  }
  for (const std::string& file : files)
    add(file, file == "-" ? ordered_json{{"bytes", input.standard_input.bytes},
                                         {"sha256", input.standard_input.sha256}}
                          : file_fingerprint(file, Look::samples));
  return corpus;
}

std::vector<ordered_json> corpus_contents(const ordered_json& corpus) {
  std::vector<ordered_json> contents;
  for (const auto& [name, about] : corpus.items()) {
    contents.push_back(about);
    if (about.is_object()) contents.back().erase("changed");
  }
  return contents;
}

std::vector<std::string> changed_settings(const ordered_json& settings) {
  const ordered_json usual = job_settings(Job(), Decides::rows);
  std::vector<std::string> names;
  for (const auto& [section, keys] : settings.items())
    for (const auto& [key, value] : keys.items())
      if (usual.value(section, ordered_json()).value(key, ordered_json()) != value)
        names.push_back(fmt::format("{}.{}", section, key));
  return names;
}

ordered_json job_fingerprint(const Job& job, bool gpu, const Shard& shard) {
  ordered_json print{
      {"sheaf", SHEAF_VERSION}, {"device", gpu ? "cuda" : "cpu"}, {"job", job_settings(job, Decides::rows)}};
  print["schema"] =
      job.task.schema.empty() ? ordered_json() : file_fingerprint(job.task.schema, Look::every_byte);
  if (!job.task.examples.path.empty()) print["examples"] = examples_fingerprint(job.task.examples);
  print.update(model_fingerprint(job.model));
  if (job.model.chat_is_file()) print["chat"] = file_fingerprint(job.model.chat, Look::every_byte);
  if (!job.task.trust.run.empty())
    print["trust"] = file_fingerprint(job.task.trust.run + "/manifest.json", Look::every_byte);
  if (!job.output.calibration.empty())
    print["calibration"] = file_fingerprint(job.output.calibration, Look::every_byte);
  print["corpus"] = corpus_fingerprint(job.input);
  if (!job.input.corpus.empty()) print["passages"] = passages_fingerprint(passage_files(job));
  print["shard"] = nullptr;
  if (shard.count > 1)
    print["shard"] = {
        {"index", shard.index}, {"count", shard.count}, {"first", shard.first}, {"end", shard.end}};
  return print;
}

ordered_json answer_settings(const Job& job, const ordered_json& fingerprint) {
  ordered_json settings;
  for (const char* part : {"sheaf", "device", "model", "adapter"}) settings[part] = fingerprint.at(part);
  settings["job"] = job_settings(job, Decides::answers);
  return settings;
}

ordered_json answer_settings(const Job& job, bool gpu) {
  ordered_json print{{"sheaf", SHEAF_VERSION}, {"device", gpu ? "cuda" : "cpu"}};
  print.update(model_fingerprint(job.model));
  return answer_settings(job, print);
}

}  // namespace sheaf
