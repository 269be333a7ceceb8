#include "io/jobs/plan_job.h"

#include <algorithm>
#include <set>

#include "core/engine/backend.h"
#include "core/methods/method.h"
#include "core/report/report.h"
#include "core/report/run_statistics.h"
#include "core/task/asked_value.h"
#include "core/text/printable.h"
#include "core/text/spelling.h"
#include "core/text/utf8.h"
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

std::string prompt_text(int64_t number, const Stack& stack, const Tokenizer& tokenizer,
                        const std::function<std::string(int32_t record)>& name) {
  std::set<std::pair<int32_t, int32_t>> questions;
  for (const Slot& slot : stack.slots) questions.emplace(slot.record, slot.question);
  const auto text_of = [&](std::span<const TokenId> tokens) { return tokenizer.decode(tokens, false); };
  std::string text =
      fmt::format("prompt {}: {} to decode, {}\n", number, counted(std::ssize(questions), "answer"),
                  counted(stack.prompt_tokens(), "token")) +
      stack_text(stack, text_of, name);
  std::string_view which = "second";
  for (Stack round = stack; round.next; which = "later") {
    const bool lists = round.next->keeps_answers();
    std::vector<Tokens> answers(round.slots.size());
    for (size_t i = 0; i < answers.size(); ++i)
      tokenizer.encode(lists ? R"( ["[entry 1]", "[entry 2]"],)" : fmt::format("[finding {}]", i + 1), false,
                       answers[i]);
    Stack next = round.next->after(answers, std::vector<double>(answers.size(), 0));
    text +=
        fmt::format("then, in a {} round: {} to decode\n", which, counted(std::ssize(next.slots), "answer")) +
        stack_text(next, text_of, name);
    round = std::move(next);
  }
  return text;
}

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

double JobPlan::rows_per_expert() const {
  if (experts.count == 0 || engine.steps == 0) return 0;
  const double choices = static_cast<double>(engine.tokens()) * experts.per_token;
  return choices / (static_cast<double>(engine.steps) * experts.count);
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
  json["prompts"] = {{"contexts", prompts.contexts()},
                     {"questions", prompts.questions()},
                     {"questions_per_context", prompts.questions_per_context()},
                     {"instruction_tokens", prompts.instruction_tokens()},
                     {"context_tokens", prompts.context_tokens()},
                     {"question_tokens", prompts.question_tokens()}};
  if (experts.count > 0) json["rows_per_expert"] = rows_per_expert();
  if (reuses) json["reused"] = read.reused;
  if (read.trusted > 0) json["trusted"] = read.trusted;
  if (engine.entry_answers > 0)
    json["entries"] = {{"assumed", kExpectedEntries},
                       {"rounds", entry_rounds},
                       {"answers", engine.entry_answers},
                       {"tokens_computed", engine.entry_tokens}};
  if (engine.first_answers > 0) json[thinks ? "thoughts" : "findings"] = engine.first_answers;
  for (const Bin& bin : bins)
    json["bins"][bin.title] = {
        {"records", bin.records}, {"stacks", bin.stacks}, {"head_tokens", bin.head_tokens}};
  for (const auto& [category, count] : examples) json["examples"][category] = count;
  return json;
}

std::string JobPlan::text(const Job& job) const {
  std::string text;
  const auto say = [&text]<class... Args>(fmt::format_string<Args...> format, Args&&... args) {
    text += printable_line(fmt::format(format, std::forward<Args>(args)...)) + "\n";
  };
  say("{} in {}, {}, {} to decode, {}", counted(read.records, "record"), counted(std::ssize(bins), "bin"),
      counted(stacks(), "prompt"), counted(engine.answers, "answer"), counted(read.rejects, "reject"));
  size_t width = 24;
  for (const Bin& bin : bins) width = std::max(width, count_characters(bin.title));
  for (const Bin& bin : bins)
    say("  {:{}} {:6} {:7} {:6} {}", bin.title, width, bin.records, plural("record", bin.records), bin.stacks,
        plural("prompt", bin.stacks));
  const int64_t tokens = engine.tokens();
  int64_t shown = 0;
  for (const auto& [category, count] : examples) shown += count;
  if (shown > 0)
    say("examples {} in all; with the instruction, at most {} tokens before a document", shown,
        head_tokens());
  if (reuses) {
    const int64_t all = read.reused + read.trusted + engine.answers;
    say("reused   {} already known ({:.1f} % of all)", counted(read.reused, "answer"),
        all > 0 ? 100 * static_cast<double>(read.reused) / static_cast<double>(all) : 0);
  }
  if (read.trusted > 0)
    say("trusted  {} of another model are not asked for", counted(read.trusted, "answer"));
  if (job.task.kind == TaskKind::ask)
    say("prompts  {}, {}, {:.2f} per context; mean tokens: instruction {:.2f}, context {:.2f}, question "
        "{:.2f}",
        counted(prompts.contexts(), "context"), counted(prompts.questions(), "question"),
        prompts.questions_per_context(), prompts.instruction_tokens(), prompts.context_tokens(),
        prompts.question_tokens());
  say("tokens   {} computed; without sharing {} ({:.1f}x)", tokens, engine.alone_tokens,
      tokens > 0 ? static_cast<double>(engine.alone_tokens) / static_cast<double>(tokens) : 0);
  if (engine.entry_answers > 0)
    say("rounds   {}: {} tokens for values and lists, then {} for {} about entries, if every list has {}",
        1 + entry_rounds, tokens - engine.entry_tokens, engine.entry_tokens,
        counted(engine.entry_answers, "answer"), kExpectedEntries);
  if (longest_object > 0)
    say("objects  a model that does not end an object writes up to {} tokens: method.max_value_tokens for "
        "each "
        "field of max_entries entries; lower these, or set method.name hpd",
        longest_object);
  if (!job.engine.kv_store.path.empty())
    say("store    plan does not look into {}; a run uses what it holds instead of computing it",
        job.engine.kv_store.path);
  if (engine.first_answers > 0 && job.input.scored_by_question())
    say("rounds   2: first how likely {} its question, then the answers",
        engine.first_answers == 1 ? "1 document makes"
                                  : fmt::format("each of {} documents makes", engine.first_answers));
  else if (engine.first_answers > 0)
    say("rounds   2: first {} of at most {} tokens, then the answers{}",
        counted(engine.first_answers, thinks ? "thought" : "finding"),
        thinks ? job.model.reasoning_tokens : job.method.finding_tokens, thinks ? "" : " from them");
  say("steps    {} of at most {} tokens, if every answer has {} tokens{}", engine.steps, step_tokens,
      answer_tokens,
      engine.first_answers > 0 && !job.input.scored_by_question()
          ? fmt::format(" and every {} {}", thinks ? "thought" : "finding",
                        thinks ? job.model.reasoning_tokens : job.method.finding_tokens)
          : "");
  if (job.method.search == SpanSearch::likeliest)
    say("search   not counted: for each span, up to {} more tokens to find the likeliest "
        "(method.search_tokens)",
        job.method.search_tokens);
  if (experts.count > 0)
    say("experts  a step gives each of the {} of a layer {:.0f} tokens on average", experts.count,
        rows_per_expert());
  say("memory   {:.1f} MB of keys and values at the peak, of {:.0f} MB",
      static_cast<double>(kv_peak_bytes) / 1e6, static_cast<double>(kv_pool_bytes) / 1e6);
  return text + rejects_text(read.rejects, read.records + read.rejects, reject_reasons,
                             fmt::format("a run writes all of them to {}/rejects.jsonl", job.output.path));
}

std::optional<JobPlan> plan_job(OpenedJob& opened, int32_t answer_tokens, bool allow_empty,
                                const OnPrompt& on_prompt, const EarlierRuns* earlier) {
  const Job& job = opened.job();
  std::optional<PlannedReuse> known;
  const Schema schema = opened.schema();
  const Job asked = job;  // with its spans, which the opened job's has no longer
  if (earlier && earlier->asked()) {
    answers_together(job.method);
    known.emplace(*earlier, make_task(opened.tokenizer(), opened.chat(), asked, schema, &opened.examples()),
                  job, answer_settings(job, opened.on_gpu()));
  }
  if (is_table(job.output.format)) row_columns(job, schema, false);  // refuses what a run would
  opened.free_answers();
  const Footprint needs = opened.footprint();
  CountingBackend backend(opened.model().config, needs.kv_bytes_per_token, needs.preferred_tokens);
  EngineOptions options = opened.engine_options(backend);
  options.assumed_tokens = answer_tokens;
  options.speculation = {};  // what a model would accept is not known
  options.expected_rounds = true;
  const StopRules rules(opened.model().config.vocab, {});
  Engine engine(backend, rules, options);

  auto task = opened.task(job);
  std::optional<TrustedRun> trusted;
  if (!job.task.trust.run.empty()) task = make_trusting_task(std::move(task), trusted.emplace(job, schema));
  Planner planner(make_builder(job.method), opened.limits({&engine}));
  PromptCount prompts;
  planner.prompts = &prompts;
  std::unique_ptr<Corpus> corpus = opened.corpus();
  const RepeatedIds* ids = RepeatedIds::watch(job, corpus);
  Pipeline pipeline(*corpus, *task, planner, engine, job.engine.window);
  if (known) pipeline.known.store = &*known;
  int64_t seen = 0;
  JobPlan plan;
  const bool objects = job.task.kind == TaskKind::extract &&
                       find_method(job.method.name).wording.answers == AnswerForm::object;
  pipeline.on_stack = [&](const Stack& stack, const std::vector<Record>& records) {
    for (const Slot& slot : stack.slots)
      if (objects && list_depth(schema.of(records[static_cast<size_t>(slot.record)].category).attributes) > 0)
        plan.longest_object = std::max(plan.longest_object, slot.max_tokens);
    on_prompt(++seen, stack, records);
  };
  RunStatistics statistics;
  if (!pipeline.run([](const Record&, const Outcome&) {},
                    [&](const Reject& reject) { statistics.reject(reject); }))
    return std::nullopt;

  plan.read = pipeline.stats();
  plan.engine = engine.stats();
  plan.prompts = std::move(prompts);
  plan.reject_reasons = statistics.reject_reasons();
  if (!allow_empty)
    check_not_lost(job.input.path, plan.read.rejects, plan.read.records + plan.read.rejects,
                   plan.reject_reasons);
  const int64_t page_bytes = backend.kv_bytes_per_token() * options.page_size;
  for (const auto& [name, bin] : planner.bins())
    if (bin.records > 0) plan.bins.push_back({bin_title(name), bin.records, bin.stacks, bin.head_tokens});
  if (plan.engine.entry_answers > 0)
    for (const auto& [name, bin] : planner.bins())
      if (const Category* category = schema.find(name.substr(0, name.find('\t')));
          category && bin.records > 0)
        plan.entry_rounds = std::max(plan.entry_rounds, list_depth(category->attributes));
  for (const auto& [category, shown] : opened.examples().by_category)
    plan.examples[category] = std::ssize(shown);
  plan.step_tokens = options.tokens_per_step;
  plan.kv_peak_bytes = plan.engine.peak_pages * page_bytes;
  plan.kv_pool_bytes = options.pages * page_bytes;
  plan.answer_tokens = answer_tokens;
  plan.reuses = known.has_value();
  plan.thinks = opened.job().model.reasoning != Reasoning::none;
  plan.experts = opened.model().config.experts;
  if (ids) plan.duplicates = ids->notice();
  return plan;
}

}  // namespace sheaf
