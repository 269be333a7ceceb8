#include "io/jobs/describe_dataset.h"

#include <filesystem>
#include <set>

#include "core/methods/method.h"
#include "core/plan/planner.h"
#include "core/plan/prompt_count.h"
#include "core/task/prompt_text.h"
#include "core/text/spelling.h"
#include "io/corpus/column_facts.h"
#include "io/corpus/corpus.h"
#include "io/datasets/dataset.h"
#include "io/jobs/opened_job.h"
#include "io/model/model_files.h"

namespace sheaf {
namespace {

using nlohmann::ordered_json;

/// As a job file with only the dataset's name would be read.
Job dataset_job(const DatasetFormat& format, const std::string& path, const std::string& model) {
  Job job;
  job.file = "inspect";
  job.model.path = model;
  job.input.path = path;
  job.input.format = format.name;
  job.input.id = "id";
  (format.documents ? job.input.documents : job.input.context) = format.documents ? "documents" : "context";
  job.input.questions = "questions";
  job.task.kind = TaskKind::ask;
  job.method.name = format.documents ? "pced" : "ippd";
  return job;
}

/// Tokens of prompts and answers.
ordered_json count_tokens(const DatasetFormat& format, const std::string& path, const std::string& model) {
  const Job job = dataset_job(format, path, model);
  const LoadedTokenizer loaded = load_tokenizer(model);
  const ChatTemplate chat = choose_chat(job.model, loaded.chat_template, *loaded.tokenizer).chat;
  const auto task = make_task(*loaded.tokenizer, chat, job, Schema());
  PromptCount prompts;
  const auto corpus = open_corpus(job, nullptr);
  while (const auto row = corpus->next())
    if (const auto* record = std::get_if<Record>(&*row))
      for (const ReadyRecord& ready : make_ready(*task, {record, 1}))
        if (ready.refused.empty()) prompts.add(ready.parts);
  int64_t answers = 0, tokens = 0;
  const auto reader = open_dataset(format.name, path);
  while (const auto row = reader->next()) {
    if (!row->error.empty()) continue;
    for (const ordered_json& question : row->cells.at("questions")) {
      const auto gold = question.find("answers");
      if (gold == question.end()) continue;
      ++answers;
      tokens += std::ssize(
          encode_part(*loaded.tokenizer, gold->empty() ? "null" : gold->front().get<std::string>()));
    }
  }
  return {{"model", model},
          {"instruction", prompts.instruction_tokens()},
          {"context", prompts.context_tokens()},
          {"question", prompts.question_tokens()},
          {"answer", answers > 0 ? ordered_json(static_cast<double>(tokens) / static_cast<double>(answers))
                                 : ordered_json()}};
}

}  // namespace

std::string recognize_dataset(const std::string& path) {
  try {
    return guess_dataset_format(path);
  } catch (const Error& error) {
    if (error.fault() != Fault::input) throw;
    return {};
  }
}

ordered_json describe_dataset(const std::string& format, const std::string& path, const std::string& model) {
  const DatasetFormat& known = *find_dataset_format(format);
  const bool asks = known.task == TaskKind::ask, contexts_here = asks && !known.corpus;
  ordered_json about{{"format", format}, {"records", 0}};
  int64_t records = 0, questions = 0, unanswerable = 0, broken = 0;
  std::string first_broken;
  std::set<std::string> contexts;  // digests would do, but datasets are small
  const auto reader = open_dataset(format, path);
  while (const auto row = reader->next()) {
    if (!row->error.empty()) {
      if (broken++ == 0) first_broken = place_text(*row) + ": " + row->error;
      continue;
    }
    ++records;
    if (!asks) continue;
    if (contexts_here) contexts.insert(row->cells.at("context").get<std::string>());
    for (const ordered_json& question : row->cells.at("questions")) {
      ++questions;
      const auto gold = question.find("answers");
      unanswerable += gold != question.end() && gold->empty();
    }
  }
  about["records"] = records;
  if (contexts_here) {
    about["contexts"] = contexts.size();
    about["questions_per_context"] =
        contexts.empty() ? 0 : static_cast<double>(questions) / static_cast<double>(contexts.size());
  }
  if (asks) {
    about["questions"] = questions;
    about["unanswerable"] = unanswerable;
  }
  if (broken > 0) about["broken"] = {{"records", broken}, {"first", first_broken}};
  if (contexts_here && !model.empty()) about["tokens"] = count_tokens(known, path, model);
  return about;
}

std::string propose_dataset_job(const std::string& format, const std::string& path,
                                const std::string& schema) {
  const DatasetFormat& known = *find_dataset_format(format);
  const std::string beside = std::filesystem::path(path).parent_path() / "corpus.jsonl";
  const std::string corpus =
      known.corpus ? fmt::format("  corpus: {}\n  top_documents: 8\n", yaml_word(beside)) : "";
  std::string text = fmt::format("input:\n  path: {}\n  format: {}\n{}\ntask:\n  kind: {}\n", yaml_word(path),
                                 format, corpus, word_of(known.task));
  if (known.task == TaskKind::extract)
    return text +
           fmt::format("  schema: {}\n\nmethod:\n  name: hpd\n",
                       schema.empty() ? "SCHEMA.yaml  # the attributes to extract" : yaml_word(schema));
  return text + (known.documents || known.corpus
                     ? "\nmethod:\n  name: pced  # each document by itself; standard: all in one prompt\n"
                     : "\nmethod:\n  name: ippd\n  documents: 6  # contexts per prompt, each with all its "
                       "questions\n");
}

}  // namespace sheaf
