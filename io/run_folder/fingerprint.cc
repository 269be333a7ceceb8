#include "io/run_folder/fingerprint.h"

#include <algorithm>
#include <filesystem>
#include <fmt/format.h>
#include <vector>

#include "core/text/printable.h"
#include "io/base/file_identity.h"
#include "io/base/store.h"
#include "io/corpus/corpus_files.h"

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

ordered_json engine_settings(const Job::Engine& engine) {
  ordered_json all = {{"kernels", word_of(engine.kernels)},
                      {"reproducible", engine.reproducible},
                      {"kv_memory_gb", engine.kv_memory_gb},
                      {"kv_dtype", word_of(engine.kv_dtype)},
                      {"window", engine.window}};
  // With any other store, the rows are those without one.
  if (engine.kv_store.rounds()) all["kv_store.bits"] = engine.kv_store.bits;
  return all;
}

ordered_json settings(const Job& job) {
  const ordered_json contrast =
      job.method.contrast < 0 ? ordered_json("dynamic") : ordered_json(job.method.contrast);
  std::string dtype(word_of(job.model.dtype));
  if (job.model.cpu_dtype != Precision::automatic)
    dtype += fmt::format(", on a CPU {}", word_of(job.model.cpu_dtype));
  const std::string chat =
      job.model.chat_is_file() ? fs::path(job.model.chat).filename().string() : job.model.chat;
  return {{"model", {{"dtype", dtype}, {"chat", chat}}},
          {"input",
           {{"format", job.input.format},
            {"split", job.input.dataset.split},
            {"turns", job.input.dataset.turns},
            {"limit", job.input.limit},
            {"too_long", word_of(job.input.too_long)},
            {"id", job.input.id},
            {"category", job.input.category},
            {"document", job.input.document},
            {"context", job.input.context},
            {"context_id", job.input.context_id},
            {"documents", job.input.documents},
            {"scores", {job.input.scores, word_of(job.input.scores_are)}},
            {"rerank_scores", {job.input.rerank_scores, word_of(job.input.rerank_scores_are)}},
            {"top_documents", job.input.top_documents},
            {"questions", job.input.questions},
            {"question", job.input.question},
            {"options", job.input.options}}},
          {"task", {{"kind", word_of(job.task.kind)}, {"instruction", job.task.instruction}}},
          {"method",
           {{"name", job.method.name},
            {"values", word_of(job.method.values)},
            {"stacking", word_of(job.method.stacking)},
            {"keys", word_of(job.method.keys)},
            {"value_end", word_of(job.method.value_end)},
            {"options", word_of(job.method.options)},
            {"documents", job.method.documents},
            {"prompt_tokens", job.method.prompt_tokens},
            {"max_value_tokens", job.method.max_value_tokens},
            {"null_bias", job.method.null_bias},
            {"contrast", contrast},
            {"prior_weight", job.method.prior_weight},
            {"aggregate", word_of(job.method.aggregate)},
            {"findings", word_of(job.method.findings)},
            {"finding_tokens", job.method.finding_tokens},
            {"temperature", job.method.temperature},
            {"top_k", job.method.top_k},
            {"top_p", job.method.top_p},
            {"seed", job.method.seed}}},
          {"engine", engine_settings(job.engine)},
          {"output",
           {{"format", word_of(job.output.format)},
            {"rows_per_file", job.output.rows_per_file},
            {"logprobs", job.output.logprobs},
            {"raw", job.output.raw},
            {"confidence", job.output.confidence},
            {"spans", job.output.spans},
            {"tokens", job.output.tokens},
            {"timing", job.output.timing}}}};
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

std::vector<std::string> changed_settings(const ordered_json& settings) {
  const ordered_json usual = sheaf::settings(Job());
  std::vector<std::string> names;
  for (const auto& [section, keys] : settings.items())
    for (const auto& [key, value] : keys.items())
      if (usual.value(section, ordered_json()).value(key, ordered_json()) != value)
        names.push_back(fmt::format("{}.{}", section, key));
  return names;
}

namespace {

ordered_json examples_fingerprint(const Job::Task::Examples& examples) {
  ordered_json prints = ordered_json::object();
  std::error_code ignored;
  const bool many = fs::is_directory(examples.path, ignored);
  const std::vector<std::string> files =
      many ? find_table_files(examples.path, "auto").files : std::vector{examples.path};
  const size_t folder = common_folder(files).size();
  for (const std::string& file : files)
    prints[printable_line(file.substr(folder))] = file_fingerprint(file, Look::samples);
  return {{"per_category", examples.per_category},
          {"seed", examples.seed},
          {"unmentioned_absent", examples.unmentioned_absent},
          {"files", std::move(prints)}};
}

}  // namespace

ordered_json job_fingerprint(const Job& job, bool gpu, const Shard& shard) {
  ordered_json print{{"sheaf", SHEAF_VERSION}, {"device", gpu ? "cuda" : "cpu"}, {"job", settings(job)}};
  // Settings that earlier versions lack are told only where they matter, so that their runs can go on.
  if (!job.input.keep.empty()) print["job"]["input"]["keep"] = job.input.keep;
  if (job.input.duplicate_ids != DuplicateIds::keep)
    print["job"]["input"]["duplicate_ids"] = word_of(job.input.duplicate_ids);
  if (!job.task.list_attributes) print["job"]["task"]["list_attributes"] = false;
  if (job.method.cut_values != CutValues::keep)
    print["job"]["method"]["cut_values"] = word_of(job.method.cut_values);
  print["schema"] =
      job.task.schema.empty() ? ordered_json() : file_fingerprint(job.task.schema, Look::every_byte);
  if (!job.task.examples.path.empty()) print["examples"] = examples_fingerprint(job.task.examples);
  print.update(model_fingerprint(job.model));
  if (job.model.chat_is_file()) print["chat"] = file_fingerprint(job.model.chat, Look::every_byte);
  if (!job.output.calibration.empty())
    print["calibration"] = file_fingerprint(job.output.calibration, Look::every_byte);
  print["corpus"] = corpus_fingerprint(job.input);
  print["shard"] = nullptr;
  if (shard.count > 1)
    print["shard"] = {
        {"index", shard.index}, {"count", shard.count}, {"first", shard.first}, {"end", shard.end}};
  return print;
}

}  // namespace sheaf
