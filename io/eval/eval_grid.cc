#include "io/eval/eval_grid.h"

#include <algorithm>
#include <filesystem>
#include <set>
#include <unordered_set>

#include "core/base/error.h"
#include "core/task/prompt_text.h"
#include "io/base/file_layer.h"
#include "io/base/job_changes.h"
#include "io/corpus/corpus.h"
#include "io/datasets/dataset.h"
#include "io/files/job_file.h"
#include "io/files/job_fingerprint.h"
#include "io/files/predictions.h"
#include "io/model/model_files.h"
#include "io/run_folder/run_folder.h"

namespace sheaf {
namespace {

using nlohmann::ordered_json;

Job read_cell(const Eval& eval, const EvalCell& cell, const GridOptions& options) {
  const Eval::Model& model = eval.models[cell.model];
  const Eval::Dataset& dataset = eval.datasets[cell.dataset];
  const Eval::Method& method = eval.methods[cell.method];
  std::vector<JobChange> changes;
  for (const auto* some : {&dataset.changes, &model.changes, &method.changes, &eval.cost})
    changes.insert(changes.end(), some->begin(), some->end());
  for (const auto& [sets, name] : {std::pair{&model.set_on, &dataset.name}, {&model.set_with, &method.label}})
    if (const auto here = sets->find(*name); here != sets->end())
      changes.insert(changes.end(), here->second.begin(), here->second.end());
  if (!options.device.empty()) changes.push_back({"engine.device", option_text("--device", options.device)});
  const std::vector<JobChange> set = set_options(options.overrides);
  changes.insert(changes.end(), set.begin(), set.end());
  if (dataset.lengths) check_lengths_changes(dataset.place, names_of(changes, &JobChange::key));
  const std::string output = fmt::format("{}/{}/{}/{}", eval.output, model.name, dataset.name, method.label);
  changes.push_back({"output.path", option_text(eval.file, output)});
  try {
    if (method.accepted > 0 && !dataset.lengths)
      refuse("{}: accepted works only on datasets with lengths, whose records are made up; remove it",
             method.place);
    if ((!method.attention || !method.share_documents) && !dataset.lengths)
      refuse("{}: {} works only on datasets with lengths, whose records are made up; remove it", method.place,
             method.attention ? "share_documents" : "attention");
    if (dataset.lengths) {
      Job job = lengths_job(eval.file, changes);
      job.input.limit = options.limit;
      check_accepted(method.place, job, method.accepted);
      if (dataset.lengths->entries > 0) check_entries(method.place, job);
      if (!options.files) return job;
      check_lengths_model(job.model.path, "model");
      if (const std::string& draft = job.method.speculate.draft; !draft.empty())
        check_lengths_model(draft, "speculate.draft");
      return job;
    }
    Job job = read_job(dataset.job, read_yaml(dataset.job, "a job file"), changes, options.files);
    if (options.limit > 0) job.input.limit = options.limit;
    if (job.input.path == "-") refuse("{}: standard input cannot be read more than once", dataset.job);
    if (!dataset.judge.empty() && job.task.kind != TaskKind::extract)
      refuse("judge works only with task.kind extract, not with {}; remove it", word_of(job.task.kind));
    if (options.files && !dataset.judge.empty() && !std::filesystem::exists(dataset.judge))
      refuse("judge.model: no such file or folder: {}", dataset.judge);
    return job;
  } catch (const Error& error) {
    // What the job of a dataset sets, an evaluation takes away by a null.
    const std::string what = error.what();
    const bool unfit = what.find(" works only with ") != std::string::npos && what.ends_with("; remove it");
    throw Error(error.fault(),
                fmt::format("{}{} (dataset {}, {})", what,
                            unfit ? ", or take it away in the evaluation: set: {KEY: null}" : "",
                            dataset.name, dataset.place));
  }
}

void check_folder(const Job& job) {
  const ordered_json before = started_as(job.output.path);
  if (!before.is_object()) return;
  const bool gpu = before.value("device", "") == "cuda";
  const std::string changes = describe_changes(before, job_fingerprint(job, gpu, {}));
  if (!changes.empty())
    refuse(
        "{}: the folder holds a run, but since then {}; choose another folder with --output, or run "
        "everything again with --restart",
        job.output.path, changes);
}

}  // namespace

std::vector<EvalCell> read_grid(const Eval& eval, const GridOptions& options) {
  std::vector<EvalCell> cells;
  for (size_t m = 0; m < eval.models.size(); ++m) {
    const std::vector<std::string>& skip = eval.models[m].skip;
    for (size_t d = 0; d < eval.datasets.size(); ++d) {
      if (std::ranges::find(skip, eval.datasets[d].name) != skip.end()) continue;
      for (size_t k = 0; k < eval.methods.size(); ++k) {
        const std::vector<std::string>& without = eval.methods[k].skip;
        if (std::ranges::find(without, eval.datasets[d].name) != without.end()) continue;
        EvalCell cell{m, d, k, {}, eval.datasets[d].lengths};
        cell.job = read_cell(eval, cell, options);
        if (cell.lengths) {
          cell.lengths->accepted = eval.methods[k].accepted;
          cell.lengths->attention = eval.methods[k].attention;
          cell.lengths->share_documents = eval.methods[k].share_documents;
        }
        if (cell.lengths && options.limit > 0)
          cell.lengths->documents =
              static_cast<int32_t>(std::min<int64_t>(cell.lengths->documents, options.limit));
        cells.push_back(std::move(cell));
      }
    }
  }
  if (cells.empty()) refuse("{}: nothing to run: every model or method skips all chosen datasets", eval.file);
  return cells;
}

bool holds_other_corpus(const Job& job) {
  const ordered_json before = started_as(job.output.path);
  return before.is_object() && corpus_contents(before.value("corpus", ordered_json::object())) !=
                                   corpus_contents(corpus_fingerprint(job.input));
}

void check_runs(const std::vector<EvalCell>& cells, bool restart) {
  std::set<std::string> models;
  for (const EvalCell& cell : cells) {
    if (cell.lengths) {
      if (!restart) measured_before(cell.job, *cell.lengths);
      continue;
    }
    const bool finished = !restart && file_size(cell.job.output.path + "/_SUCCESS");
    // Without its adapter: merging that takes longer than a check may.
    if (!finished && models.insert(cell.job.model.path).second) {
      load_model(cell.job.model.path);
      load_tokenizer(cell.job.model.path);
    }
    if (!restart) check_folder(cell.job);
  }
}

void for_each_asked(const Job& job, const std::function<bool(const AskedItem&)>& take) {
  Schema schema;
  const bool extract = job.task.kind == TaskKind::extract;
  if (extract) schema = read_schema(job);
  const auto corpus = open_corpus(job, extract ? &schema : nullptr);
  while (const auto row = corpus->next()) {
    const Record* record = std::get_if<Record>(&*row);
    if (record == nullptr) continue;
    const std::string row_id = id_text(record->id);
    AskedItem asked{row_id, record->id, record->place, record->category, whole_document(*record), {}};
    if (record->questions.empty() || asks_one_question(job)) {
      if (!record->questions.empty()) asked.question = record->questions.front().text;
      if (!take(asked)) return;
      continue;
    }
    for (size_t q = 0; q < record->questions.size(); ++q) {
      const std::string own = id_text(record->questions[q].id);
      asked.id = own.empty() ? fmt::format("{}/{}", row_id, q) : own;
      asked.question = record->questions[q].text;
      if (!take(asked)) return;
    }
  }
}

std::vector<GoldAnswer> read_asked_gold(const Eval::Dataset& dataset, const Job& job) {
  if (job.task.kind == TaskKind::chat && dataset.gold.empty())
    refuse("{}: dataset {}: requests have no gold answers; set gold, or leave out metric", dataset.place,
           dataset.name);
  if (dataset.gold.empty() && job.input.dataset.split != "test")
    refuse("{}: dataset {}: there are gold answers only for the split test; leave out input.split or metric",
           dataset.place, dataset.name);
  const std::string path = dataset.gold.empty() ? job.input.path : dataset.gold;
  std::string format = dataset.gold_format;
  if (format.empty())
    format = dataset.gold.empty() && find_dataset_format(job.input.format) ? job.input.format : "auto";
  std::vector<GoldAnswer> gold = read_gold(format, path);
  if (job.input.limit == 0) return gold;
  // What lies beyond the limit was not asked; what a run did not answer of the rest is wrong.
  std::unordered_set<std::string> asked;
  for_each_asked(job, [&](const AskedItem& item) { return asked.insert(item.id), true; });
  std::erase_if(gold, [&](const GoldAnswer& answer) { return !asked.contains(id_text(answer.id)); });
  return gold;
}

}  // namespace sheaf
