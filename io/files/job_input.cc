#include <algorithm>
#include <filesystem>

#include "core/base/error.h"
#include "core/methods/method.h"
#include "core/task/row.h"
#include "core/text/spelling.h"
#include "io/base/foreign_files.h"
#include "io/base/store_uri.h"
#include "io/corpus/corpus.h"
#include "io/datasets/dataset.h"
#include "io/files/job_file.h"
#include "io/files/job_keys.h"
#include "io/files/job_paths.h"

namespace sheaf {
namespace {

constexpr const char* kBatchFormat = "openai-batch";

/// Whether the prompt has a question of its own, the same for every record.
bool asks_itself(const Job& job) {
  const std::optional<std::string>& question = job.task.prompt.question;
  return job.task.kind == TaskKind::ask && question && !PromptTemplate(*question).has("question");
}

/// What a dataset that is read as it is downloaded needs, and the columns that it has.
void read_dataset(const YamlMap& map, Job& job, bool files) {
  Job::Input& input = job.input;
  const TaskKind kind = job.task.kind;
  const Job::Input::Dataset& dataset = input.dataset;
  const DatasetFormat* format = find_dataset_format(input.format);
  if (dataset.shots > 0 && dataset.shots_from.empty() && input.format != "narrativeqa")
    refuse("{}: input.shots needs input.shots_from, a file with examples (not the file to answer)",
           map.where("shots"));
  if (files)
    check_exists(map, "shots_from", dataset.shots_from,
                 format ? fmt::format("get it from {} (docs/datasets.md)", format->source) : "");
  if (!format) return;
  if (format->task != kind)
    refuse("{}: input.format {} works only with task.kind {}", map.where("format"), format->name,
           word_of(format->task));
  if (kind == TaskKind::extract) {
    if (input.id.empty() && format->named) input.id = "id";
    if (input.category.empty()) input.category = "category";
    if (input.document.empty()) input.document = {"document"};
  } else {
    if (input.id.empty()) input.id = "id";
    if (input.context.empty() && !input.has_documents())
      (format->documents ? input.documents : input.context) = format->documents ? "documents" : "context";
    if (input.questions.empty() && input.question.empty() && !asks_itself(job)) input.questions = "questions";
    if (format->corpus && input.corpus.empty())
      refuse(
          "{}: the questions of {} are about a collection of passages; set input.corpus to its corpus.jsonl",
          map.where("format"), format->name);
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
void read_requests(const YamlMap& map, Job::Input& input) {
  if (input.format != kBatchFormat)
    refuse("{}: task.kind chat reads the requests of an OpenAI batch file; set input.format: {}",
           map.where("format"), kBatchFormat);
  input.id = "custom_id";
}

/// The columns of a job that asks.
void check_questions(const YamlMap& map, const Job& job) {
  const Job::Input& input = job.input;
  if (input.context.empty() && !input.has_documents()) needs(map, "context", "task.kind ask");
  const auto either = [&](const std::string& one, const std::string& other, std::string_view key,
                          std::string_view key_of_other) {
    if (!one.empty() && !other.empty())
      refuse("{}: input.{} and input.{} are both given; keep one", map.where(key_of_other), key,
             key_of_other);
  };
  either(input.context, input.documents, "context", "documents");
  either(input.context, input.corpus, "context", "corpus");
  either(input.documents, input.corpus, "documents", "corpus");
  if (!input.corpus.empty() && !input.scores.empty() && !input.scored_by_question())
    refuse(
        "{}: passages of input.corpus have no column \"{}\"; set input.scores to question, or leave it out",
        map.where("scores"), input.scores);
  if (input.scored_by_question() && !input.rerank_scores.empty())
    refuse("{}: input.rerank_scores does not go with input.scores question; leave one out",
           map.where("rerank_scores"));
  if (!input.corpus.empty() && input.top_documents == 0)
    refuse("{}: input.corpus needs input.top_documents, how many passages a question gets; set it to 8, say",
           map.where("corpus"));
  if (map.has("questions") && map.has("question"))
    refuse("{}: input.questions and input.question are both given; keep one", map.where("question"));
  if (!map.has("question") && input.questions.empty() && !asks_itself(job))
    needs(map, "questions", "task.kind ask");
}

/// What the keys of the section mean together, and for the task.
void check_columns(const YamlMap& map, Job& job, bool files, MistakeList& found) {
  Job::Input& input = job.input;
  const TaskKind kind = job.task.kind;
  const bool fits = found.attempt([&] {
    if (kind != TaskKind::chat && input.format == kBatchFormat)
      refuse("{}: input.format {} works only with task.kind chat", map.where("format"), kBatchFormat);
    if (kind == TaskKind::chat) read_requests(map, input);
    read_dataset(map, job, files);
  });
  if (!fits) return;
  check_scopes("input", map, job, found);
  found.attempt([&] { check_keep(map, input.keep); });
  found.attempt([&] {
    if (kind == TaskKind::extract && input.document.empty()) needs(map, "document", "task.kind extract");
    if (kind == TaskKind::ask) check_questions(map, job);
  });
  found.attempt([&] {
    if (input.duplicate_ids == DuplicateIds::refuse && input.id.empty())
      needs(map, "id", "input.duplicate_ids refuse");
  });
}

}  // namespace

void needs(const YamlMap& map, std::string_view key, std::string_view what) {
  if (!map.has(key)) refuse("{}: {} needs the key \"{}\"", map.where(key), what, map.path(key));
}

void read_input(YamlMap map, Job& job, bool files, MistakeList& found) {
  Job::Input& input = job.input;
  const size_t before = found.size();
  found.attempt([&] {
    map.text("path", input.path);
    if (input.path != "-") map.file_path("path", input.path);
  });
  read_keys("input", map, job, found);
  // A table has the columns that a file would have, and none of a dataset's own.
  if (input.table) input.format = Job::Input().format;
  if (input.table && job.task.kind == TaskKind::chat)
    found.add(fmt::format(
        "{}: task.kind chat reads requests from a batch file, not from a table; name the file as input.path",
        map.where("format")));
  found.attempt([&] { map.finish(); });
  for (const JobKey& key : job_keys())
    if (key.section() == "input")
      input.places[key.path] = fmt::format("{}: {}", map.where(key.name()), key.path);
  found.attempt([&] {
    if (!input.locale.empty() && !find_locale(input.locale))
      refuse("{}: the locale \"{}\" is not known; give {}", input.places["input.locale"],
             shorten_text(input.locale, 60), known_locales());
  });
  const bool sound = found.size() == before;
  if (sound && job.task.kind != TaskKind::none) check_columns(map, job, files, found);
  if (!files || input.table || !map.has("path") || input.path.empty()) return;
  found.attempt([&] {
    if (input.path != "-" && !is_uri(input.path) && !has_wildcard(input.path) &&
        !find_dataset_format(input.format))
      check_exists(map, "path", input.path, corpus_advice(map.node("path")->text, input.path));
    // What the files of a folder are goes by the format.
    if (found.size() == before) list_corpus(input, map.where("path") + ": input.path: ");
  });
}

void add_examples(Job& job) {
  const Job::Input::Dataset& dataset = job.input.dataset;
  if (dataset.shots == 0) return;
  Job::Task::Prompt& prompt = job.task.prompt;
  if (job.task.instruction.empty() && !prompt.instruction)
    refuse("{}: input.shots needs task.instruction or task.prompt.instruction; the examples are put after it",
           job.file);
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
  const std::string built_in =
      fmt::format("{}{{document}}\n\nQuestion: {{question}}\n{{options}}\nAnswer: {{answer}}",
                  plain ? "Document: " : "Passage:\n");
  for (std::string& example :
       few_shot_examples(*reader, dataset.shots, PromptTemplate(prompt.example.value_or(built_in)))) {
    while (prompt.example && example.ends_with('\n')) example.pop_back();
    if (prompt.instruction)
      prompt.shots += example + "\n\n";
    else
      job.task.instruction += "\n\n" + example;
  }
}

}  // namespace sheaf
