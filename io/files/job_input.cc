#include "io/files/job_input.h"

#include <algorithm>
#include <filesystem>

#include "core/base/error.h"
#include "core/methods/method.h"
#include "core/task/row.h"
#include "core/text/spelling.h"
#include "io/base/foreign_files.h"
#include "io/base/store_uri.h"
#include "io/corpus/corpus_files.h"
#include "io/datasets/dataset.h"
#include "io/datasets/examples.h"

namespace sheaf {
namespace {

constexpr const char* kBatchFormat = "openai-batch";

std::vector<std::string> corpus_format_names() {
  std::vector<std::string> names = {"auto", "jsonl", "csv", "parquet", kBatchFormat};
  for (const DatasetFormat& format : dataset_formats()) names.push_back(format.name);
  return names;
}

/// The keys of a dataset that is read as it is downloaded, whose columns are known.
void read_dataset(YamlMap& map, Job::Input& input, TaskKind kind, bool files) {
  Job::Input::Dataset& dataset = input.dataset;
  map.choice("split", dataset.split, {"train", "valid", "test"});
  map.integer("turns", dataset.turns, {0, 100});
  map.integer("shots", dataset.shots, {0, 100});
  map.file_path("shots_from", dataset.shots_from);
  const DatasetFormat* format = find_dataset_format(input.format);
  if (kind != TaskKind::ask) only_for(map, {"shots", "shots_from"}, "task.kind ask");
  if (dataset.shots > 0 && dataset.shots_from.empty() && input.format != "narrativeqa")
    refuse("{}: input.shots needs input.shots_from, a file with examples (not the file to answer)",
           map.where("shots"));
  if (files)
    check_exists(map, "shots_from", dataset.shots_from,
                 format ? fmt::format("get it from {} (docs/datasets.md)", format->source) : "");
  if (!format) return only_for(map, {"split", "turns"}, "datasets (input.format)");
  if (format->task != kind)
    refuse("{}: input.format {} works only with task.kind {}", map.where("format"), format->name,
           word_of(format->task));
  if (format->name != "narrativeqa") only_for(map, {"split"}, "input.format narrativeqa");
  if (format->name != "quac") only_for(map, {"turns"}, "input.format quac");
  only_for(map, {"context_id", "keep"}, "JSONL, CSV and Parquet");
  if (kind == TaskKind::extract) {
    if (input.category.empty()) input.category = "category";
    if (input.document.empty()) input.document = {"document"};
  } else {
    if (input.id.empty()) input.id = "id";
    if (input.context.empty() && input.documents.empty())
      (format->documents ? input.documents : input.context) = format->documents ? "documents" : "context";
    if (input.questions.empty() && input.question.empty()) input.questions = "questions";
  }
}

/// A kept column stands in the row beside what the row has of its own.
void check_keep(const YamlMap& map, const std::vector<std::string>& keep) {
  for (auto column = keep.begin(); column != keep.end(); ++column) {
    if (is_row_key(*column))
      refuse(
          "{}: input.keep: rows may have a \"{}\" of their own; rename the column in the corpus, or leave it "
          "out",
          map.where("keep"), *column);
    if (std::find(keep.begin(), column, *column) != column)
      refuse("{}: input.keep: \"{}\" appears twice; remove one", map.where("keep"),
             shorten_text(*column, 60));
  }
}

/// How to get a corpus that is missing. `written`: its path as the job has it.
std::string corpus_advice(const std::string& written, const std::string& path) {
  std::string advice = make_advice(path);
  return advice.empty() ? download_advice(written, Hosted::dataset) : advice;
}

/// Requests name everything by themselves.
void check_batch(const YamlMap& map, Job::Input& input) {
  only_for(map,
           {"id", "category", "document", "context", "context_id", "documents", "scores", "scores_are",
            "rerank_scores", "rerank_scores_are", "top_documents", "questions", "question", "options",
            "too_long", "keep"},
           "task.kind extract and ask");
  if (input.format != kBatchFormat)
    refuse("{}: task.kind chat reads the requests of an OpenAI batch file; set input.format: {}",
           map.where("format"), kBatchFormat);
  input.id = "custom_id";
}

}  // namespace

void check_exists(const YamlMap& map, std::string_view key, const std::string& path,
                  const std::string& advice) {
  if (path.empty()) return;
  std::error_code ignored;
  if (!std::filesystem::exists(path, ignored))
    refuse("{}: {}: {}{}{}", map.where(key), map.path(key), describe_missing(path),
           advice.empty() ? "" : "; ", advice);
}

void only_for(const YamlMap& map, std::initializer_list<std::string_view> keys, std::string_view what) {
  for (std::string_view key : keys)
    if (map.has(key)) refuse("{}: {} works only with {}; remove it", map.where(key), map.path(key), what);
}

void needs(const YamlMap& map, std::string_view key, std::string_view what) {
  if (!map.has(key)) refuse("{}: {} needs the key \"{}\"", map.where(key), what, map.path(key));
}

void read_input(YamlMap map, Job::Input& input, TaskKind kind, bool files) {
  map.text("path", input.path);
  if (input.path != "-") map.file_path("path", input.path);
  map.choice("format", input.format, corpus_format_names());
  map.integer("limit", input.limit, kFromZero);
  read_choice(map, "too_long", input.too_long);
  read_choice(map, "duplicate_ids", input.duplicate_ids);
  map.text("id", input.id);
  map.text("category", input.category);
  map.text_list("document", input.document);
  map.text("context", input.context);
  map.text("context_id", input.context_id);
  map.text("documents", input.documents);
  map.text("scores", input.scores);
  read_choice(map, "scores_are", input.scores_are);
  map.text("rerank_scores", input.rerank_scores);
  read_choice(map, "rerank_scores_are", input.rerank_scores_are);
  map.integer("top_documents", input.top_documents, {0, 1000});
  map.text("questions", input.questions);
  map.text("question", input.question);
  map.text("options", input.options);
  map.text_list("keep", input.keep);
  read_dataset(map, input, kind, files);
  map.require("path");
  map.finish();
  for (const char* key : {"path", "id", "category", "document", "context", "context_id", "documents",
                          "scores", "rerank_scores", "questions", "question", "options", "keep"})
    input.places[map.path(key)] = fmt::format("{}: {}", map.where(key), map.path(key));
  check_keep(map, input.keep);
  if (kind != TaskKind::chat && input.format == kBatchFormat)
    refuse("{}: input.format {} works only with task.kind chat", map.where("format"), kBatchFormat);
  if (kind == TaskKind::chat) {
    check_batch(map, input);
  } else if (kind == TaskKind::extract) {
    if (input.document.empty()) needs(map, "document", "task.kind extract");
    only_for(map,
             {"context", "context_id", "documents", "scores", "scores_are", "rerank_scores",
              "rerank_scores_are", "top_documents", "questions", "question", "options"},
             "task.kind ask");
  } else {
    if (input.context.empty() && input.documents.empty()) needs(map, "context", "task.kind ask");
    if (!input.context.empty() && !input.documents.empty())
      refuse("{}: input.context and input.documents are both given; keep one", map.where("documents"));
    if (!input.documents.empty()) only_for(map, {"context_id"}, "input.context");
    if (input.documents.empty())
      only_for(map, {"scores", "scores_are", "rerank_scores", "rerank_scores_are", "top_documents"},
               "input.documents");
    only_for(map, {"category", "document"}, "task.kind extract");
    if (map.has("questions") && map.has("question"))
      refuse("{}: input.questions and input.question are both given; keep one", map.where("question"));
    if (!map.has("question")) {
      only_for(map, {"options"}, "input.question");
      if (input.questions.empty()) needs(map, "questions", "task.kind ask");
    }
  }
  if (input.duplicate_ids == DuplicateIds::refuse && input.id.empty())
    needs(map, "id", "input.duplicate_ids refuse");
  if (!files) return;
  if (input.path != "-" && !is_uri(input.path) && !has_wildcard(input.path) &&
      !find_dataset_format(input.format))
    check_exists(map, "path", input.path, corpus_advice(map.node("path")->text, input.path));
  list_corpus(input, map.where("path") + ": input.path: ");
}

void add_examples(Job& job) {
  const Job::Input::Dataset& dataset = job.input.dataset;
  if (dataset.shots == 0) return;
  if (job.task.instruction.empty())
    refuse("{}: input.shots needs task.instruction; the examples are put after it", job.file);
  DatasetOptions options = dataset;
  options.split = "train";
  const std::string path = dataset.shots_from.empty() ? job.input.path : dataset.shots_from;
  std::error_code ignored;
  const bool same_file = std::filesystem::equivalent(path, job.input.path, ignored);
  if (same_file && (job.input.format != "narrativeqa" || dataset.split == options.split))
    refuse("{}: input.shots: the examples would come from the documents that the job asks about; {}",
           job.file,
           job.input.format == "narrativeqa" ? "use another input.split" : "name another input.shots_from");
  const auto reader = find_dataset_format(job.input.format) ? open_dataset(job.input.format, path, options)
                                                            : open_own_corpus(path);
  const bool plain = find_method(job.method.name).wording.plain_text;
  job.task.instruction +=
      "\n\n" + few_shot_examples(*reader, dataset.shots, plain ? "Document: " : "Passage:\n");
}

}  // namespace sheaf
