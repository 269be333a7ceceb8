#include "io/jobs/plan_job.h"

#include <algorithm>

#include "core/engine/backend.h"
#include "core/report/report.h"
#include "core/report/run_statistics.h"
#include "io/files/job_fingerprint.h"
#include "io/jobs/repeated_ids.h"
#include "io/jobs/trusted_run.h"
#include "io/run_folder/table_rows.h"

namespace sheaf {
namespace {

/// A tab stands before what tells a bin from its category.
std::string bin_title(std::string name) {
  if (const size_t tab = name.find('\t'); tab != std::string::npos) name.replace(tab, 1, ", ");
  return name;
}

}  // namespace

int64_t JobPlan::stacks() const {
  int64_t all = 0;
  for (const Bin& bin : bins) all += bin.stacks;
  return all;
}

int64_t JobPlan::head_tokens() const {
  int64_t most = 0;
  for (const Bin& bin : bins) most = std::max(most, bin.head_tokens);
  return most;
}

nlohmann::ordered_json JobPlan::json() const {
  nlohmann::ordered_json json{{"records", read.records},
                              {"rejects", read.rejects},
                              {"reject_reasons", reject_reasons},
                              {"answers", engine.answers},
                              {"stacks", stacks()},
                              {"tokens_computed", engine.tokens()},
                              {"tokens_one_prompt_per_question", engine.alone_tokens},
                              {"assumed_answer_tokens", answer_tokens},
                              {"expected_steps", engine.steps},
                              {"kv_bytes_peak", kv_peak_bytes},
                              {"kv_bytes_pool", kv_pool_bytes}};
  if (reuses) json["reused"] = read.reused;
  if (read.trusted > 0) json["trusted"] = read.trusted;
  if (engine.first_answers > 0) json["findings"] = engine.first_answers;
  for (const Bin& bin : bins)
    json["bins"][bin.title] = {
        {"records", bin.records}, {"stacks", bin.stacks}, {"head_tokens", bin.head_tokens}};
  for (const auto& [category, count] : examples) json["examples"][category] = count;
  return json;
}

std::optional<JobPlan> plan_job(OpenedJob& opened, int32_t answer_tokens, bool allow_empty,
                                const OnPrompt& on_prompt, const EarlierRuns* earlier) {
  const Job& job = opened.job();
  std::optional<PlannedReuse> known;
  const Schema schema = opened.schema();
  if (earlier && earlier->asked()) {
    answers_together(job.method);
    known.emplace(*earlier, make_task(opened.tokenizer(), opened.chat(), job, schema, &opened.examples()),
                  job, answer_settings(job, opened.on_gpu()));
  }
  if (is_table(job.output.format)) row_columns(job, schema, false);  // refuses what a run would
  opened.free_answers();
  const Footprint needs = opened.footprint();
  CountingBackend backend(opened.model().config, needs.kv_bytes_per_token, needs.preferred_tokens);
  EngineOptions options = opened.engine_options(backend);
  options.assumed_tokens = answer_tokens;
  options.speculation = {};  // what a model would accept is not known
  options.longest_rounds = true;
  const StopRules rules(opened.model().config.vocab, {});
  Engine engine(backend, rules, options);

  auto task = opened.task(job);
  std::optional<TrustedRun> trusted;
  if (!job.task.trust.run.empty()) task = make_trusting_task(std::move(task), trusted.emplace(job, schema));
  Planner planner(make_builder(job.method), opened.limits({&engine}));
  std::unique_ptr<Corpus> corpus = opened.corpus();
  const RepeatedIds* ids = RepeatedIds::watch(job, corpus);
  Pipeline pipeline(*corpus, *task, planner, engine, job.engine.window);
  if (known) pipeline.known.store = &*known;
  int64_t seen = 0;
  pipeline.on_stack = [&](const Stack& stack, const std::vector<Record>& records) {
    on_prompt(++seen, stack, records);
  };
  RunStatistics statistics;
  if (!pipeline.run([](const Record&, const Outcome&) {},
                    [&](const Reject& reject) { statistics.reject(reject); }))
    return std::nullopt;

  JobPlan plan;
  plan.read = pipeline.stats();
  plan.engine = engine.stats();
  plan.reject_reasons = statistics.reject_reasons();
  if (!allow_empty)
    check_not_lost(job.input.path, plan.read.rejects, plan.read.records + plan.read.rejects,
                   plan.reject_reasons);
  const int64_t page_bytes = backend.kv_bytes_per_token() * options.page_size;
  for (const auto& [name, bin] : planner.bins())
    if (bin.records > 0) plan.bins.push_back({bin_title(name), bin.records, bin.stacks, bin.head_tokens});
  for (const auto& [category, shown] : opened.examples().by_category)
    plan.examples[category] = std::ssize(shown);
  plan.step_tokens = options.tokens_per_step;
  plan.kv_peak_bytes = plan.engine.peak_pages * page_bytes;
  plan.kv_pool_bytes = options.pages * page_bytes;
  plan.answer_tokens = answer_tokens;
  plan.reuses = known.has_value();
  if (ids) plan.duplicates = ids->notice();
  return plan;
}

}  // namespace sheaf
