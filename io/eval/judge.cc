#include "io/eval/judge.h"

#include "core/base/error.h"
#include "core/metrics/judge.h"
#include "core/report/report.h"
#include "io/files/batch_request.h"
#include "io/files/job_file.h"
#include "io/files/predictions.h"
#include "io/jobs/run_job.h"

namespace sheaf {
namespace {

constexpr int32_t kReplyTokens = 2048;  // the judge explains every value before it sums up

Job judge_job(const std::string& judge_model, const EvalCell& cell, const std::string& requests) {
  Job job;
  job.file = cell.job.file;
  job.model.path = judge_model;
  job.input.path = requests;
  job.input.format = "openai-batch";
  job.input.id = "custom_id";
  job.task.kind = TaskKind::chat;
  job.method.name = "prefix";
  job.method.prompt_tokens = 32768;
  job.method.max_value_tokens = kReplyTokens;
  job.engine = cell.job.engine;
  job.output.path = cell.job.output.path + "/judge/run";
  return job;
}

}  // namespace

Judgements count_replies(const std::string& folder, int64_t asked) {
  Judgements judgements;
  judgements.asked = asked;
  const Predictions replies = read_predictions(folder);
  std::vector<MetricItem> items;
  for (const std::string& id : replies.ids) {
    const nlohmann::json& reply = replies.by_id.at(id).at("answer");
    try {
      if (!reply.is_string()) throw BadText("no reply");
      for (const auto& [attribute, word] : read_judgements(reply.get_ref<const std::string&>()))
        items.push_back(
            {fmt::format("{}/{}", id, attribute), id, {}, attribute, std::vector<std::string>{word}, {}});
    } catch (const BadText&) {
      ++judgements.unread;
    }
  }
  judgements.unread += asked - static_cast<int64_t>(replies.ids.size());  // too long for the judge
  if (items.empty()) return judgements;
  judgements.llm_f1 = score_items(find_metric("llm-f1"), items, {0, 0}).values[0];
  return judgements;
}

JudgedRun judge_run(FileLayer& files, const std::string& judge_model, const EvalCell& cell,
                    const AskedItems& asked, bool restart, RunListener& listener) {
  const Schema schema = read_schema(cell.job);
  const Predictions predictions = read_predictions(cell.job.output.path);
  std::string lines;
  for (const std::string& id : predictions.ids) {
    const AskedItem& item = asked.at(id);
    const Category* category =
        item.category.empty() ? &schema.categories.front() : schema.find(item.category);
    lines += batch_request(id, judge_dialog(*category, item.context, predictions.by_id.at(id)),
                           {{"max_tokens", kReplyTokens}});
  }
  const std::string folder = cell.job.output.path + "/judge";
  files.make_folder(folder);
  // A large corpus is known by the time of its last change too.
  if (read_whole(folder + "/requests.jsonl") != lines) write_whole(files, folder, "requests.jsonl", lines);
  const Job job = judge_job(judge_model, cell, folder + "/requests.jsonl");
  RunSettings settings;
  settings.restart = restart || holds_other_corpus(job);
  settings.allow_empty = true;  // every request may be too long
  const RunEnd end = run_job(job, settings, listener);
  if (end.exit_code == 130) return {std::nullopt, end.interrupted};
  if (!end.report.is_object())
    refuse("{}/report.json is missing; use --restart to run everything again", job.output.path);
  const auto count = static_cast<int64_t>(predictions.ids.size());
  if (!has_rows(end.report)) return {Judgements{std::nullopt, count, count}, {}};
  return {count_replies(job.output.path, count), {}};
}

}  // namespace sheaf
