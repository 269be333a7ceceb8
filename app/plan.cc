#include <CLI/CLI.hpp>
#include <algorithm>
#include <fmt/format.h>
#include <memory>
#include <optional>
#include <set>

#include "app/checks.h"
#include "app/commands.h"
#include "app/job_options.h"
#include "app/signals.h"
#include "app/terminal.h"
#include "core/base/error.h"
#include "core/plan/counting_backend.h"
#include "core/plan/pipeline.h"
#include "core/report/rejects_text.h"
#include "core/report/run_statistics.h"
#include "core/segments/stack_text.h"
#include "core/text/spelling.h"
#include "core/text/table.h"
#include "io/base/named_output.h"
#include "io/files/predictions.h"
#include "io/jobs/repeated_ids.h"
#include "io/jobs/workbench.h"
#include "io/run_folder/output_place.h"

namespace sheaf {
namespace {

struct PlanOptions : JobOptions {
  int64_t dump = 0;
  std::string dump_path = "-";
  int64_t prompt = 0;  ///< to show as text, from 1; 0: none
  int32_t answer_tokens = 8;
  bool allow_empty = false;
};

/// The name of a bin for people: a tab stands before what tells it from its category.
std::string bin_title(std::string name) {
  if (const size_t tab = name.find('\t'); tab != std::string::npos) name.replace(tab, 1, ", ");
  return name;
}

void show_prompt(const Stack& stack, const Tokenizer& tokenizer, int64_t number,
                 const std::function<std::string(int32_t record)>& name) {
  std::set<std::pair<int32_t, int32_t>> questions;
  for (const Slot& slot : stack.slots) questions.emplace(slot.record, slot.question);
  print_line(fmt::format("prompt {}: {} to decode, {}", number, counted(std::ssize(questions), "answer"),
                         counted(stack.prompt_tokens(), "token")));
  const auto text_of = [&](std::span<const TokenId> tokens) { return tokenizer.decode(tokens, false); };
  print_text(stack_text(stack, text_of, name));
  if (!stack.next) return;
  std::vector<Tokens> answers(stack.slots.size());
  for (size_t i = 0; i < answers.size(); ++i)
    tokenizer.encode(fmt::format("[finding {}]", i + 1), false, answers[i]);
  const Stack next = stack.next->after(answers);
  print_line(fmt::format("then, in a second round: {} to decode", counted(std::ssize(next.slots), "answer")));
  print_text(stack_text(next, text_of, name));
}

int plan(const PlanOptions& options) {
  stop_in_order();
  Workbench bench(options.read());
  if (!take_input(bench)) return 130;
  bench.free_answers();
  const Job& job = bench.job();
  const Footprint needs = bench.footprint();
  CountingBackend backend(bench.model().config, needs.kv_bytes_per_token, needs.preferred_tokens);
  EngineOptions engine_options = bench.engine_options(backend);
  engine_options.assumed_tokens = options.answer_tokens;
  engine_options.speculation = {};  // what a model would accept is not known
  engine_options.longest_rounds = true;
  const StopRules rules(bench.model().config.vocab, {});
  Engine engine(backend, rules, engine_options);

  std::optional<NamedOutput> file;
  if (options.dump > 0 && options.dump_path != "-") file.emplace(options.dump_path, paths_read(job));
  std::string graphs;
  int64_t dumped = 0;

  const auto task = bench.task(job);
  Planner planner(make_builder(job.method), bench.limits({&engine}));
  std::unique_ptr<Corpus> corpus = bench.corpus();
  const RepeatedIds* ids = nullptr;
  if (!job.input.id.empty()) {
    auto watched = std::make_unique<RepeatedIds>(std::move(corpus), job.input.duplicate_ids, job.output.path);
    ids = watched.get();
    corpus = std::move(watched);
  }
  Pipeline pipeline(*corpus, *task, planner, engine, job.engine.window);
  int64_t seen = 0;
  pipeline.on_stack = [&](const Stack& stack, const std::vector<Record>& records) {
    const auto id = [&](int32_t record) { return records[static_cast<size_t>(record)].id; };
    if (++seen == options.prompt)
      show_prompt(stack, bench.tokenizer(), seen, [&](int32_t record) { return id_text(id(record)); });
    if (dumped == options.dump) return;
    ++dumped;
    const std::string graph = dump_stack(stack, id);
    if (options.dump_path == "-")
      print_json_text(graph);
    else
      graphs += graph + '\n';
  };
  RunStatistics statistics;
  if (!pipeline.run([](const Record&, const Outcome&) {},
                    [&](const Reject& reject) { statistics.reject(reject); }))
    return 130;
  if (file) file->write(graphs);

  const int64_t rejects = pipeline.stats().rejects, records = pipeline.stats().records + rejects;
  if (!options.allow_empty) check_not_lost(job.input.path, rejects, records, statistics.reject_reasons());
  const EngineStats& stats = engine.stats();
  const int64_t page_bytes = backend.kv_bytes_per_token() * engine_options.page_size;
  const double share =
      stats.tokens() > 0 ? static_cast<double>(stats.alone_tokens) / static_cast<double>(stats.tokens()) : 0;
  int64_t stacks = 0, head = 0, examples = 0;
  size_t width = 24;
  for (const auto& [name, bin] : planner.bins()) {
    width = std::max(width, text_width(bin_title(name)));
    stacks += bin.stacks;
    head = std::max(head, bin.head_tokens);
  }
  for (const auto& [category, shown] : bench.examples().by_category) examples += std::ssize(shown);
  // A dump or a prompt on standard output stays by itself; the summary then goes to standard error.
  if (options.prompt > stacks)
    refuse("--prompt {}: the job has only {}; name one of them", options.prompt, counted(stacks, "prompt"));
  const bool taken = options.prompt > 0 || (options.dump > 0 && options.dump_path == "-");
  const Stream to = taken ? Stream::err : Stream::out;
  if (options.json) {
    nlohmann::ordered_json json{{"records", pipeline.stats().records},
                                {"rejects", rejects},
                                {"reject_reasons", statistics.reject_reasons()},
                                {"answers", stats.answers},
                                {"stacks", stacks},
                                {"tokens_computed", stats.tokens()},
                                {"tokens_one_prompt_per_question", stats.alone_tokens},
                                {"assumed_answer_tokens", options.answer_tokens},
                                {"expected_steps", stats.steps},
                                {"kv_bytes_peak", stats.peak_pages * page_bytes},
                                {"kv_bytes_pool", engine_options.pages * page_bytes}};
    if (stats.first_answers > 0) json["findings"] = stats.first_answers;
    for (const auto& [name, bin] : planner.bins())
      json["bins"][bin_title(name)] = {
          {"records", bin.records}, {"stacks", bin.stacks}, {"head_tokens", bin.head_tokens}};
    for (const auto& [category, shown] : bench.examples().by_category)
      json["examples"][category] = shown.size();
    print_json(json, 2, to);
  } else if (!options.quiet) {
    const auto say = [to]<class... Args>(fmt::format_string<Args...> format, Args&&... args) {
      print_line(fmt::format(format, std::forward<Args>(args)...), to);
    };
    say("{} in {}, {}, {} to decode, {}", counted(pipeline.stats().records, "record"),
        counted(std::ssize(planner.bins()), "bin"), counted(stacks, "prompt"),
        counted(stats.answers, "answer"), counted(rejects, "reject"));
    for (const auto& [name, bin] : planner.bins())
      say("  {:{}} {:6} {:7} {:6} {}", bin_title(name), width, bin.records, plural("record", bin.records),
          bin.stacks, plural("prompt", bin.stacks));
    if (examples > 0)
      say("examples {} in all; with the instruction, at most {} tokens before a document", examples, head);
    say("tokens   {} computed; without sharing {} ({:.1f}x)", stats.tokens(), stats.alone_tokens, share);
    if (!job.engine.kv_store.path.empty())
      say("store    {} is not looked into; a run reads what is in it instead of computing it",
          job.engine.kv_store.path);
    if (stats.first_answers > 0)
      say("rounds   2: first {} of at most {} tokens, then the answers from them",
          counted(stats.first_answers, "finding"), job.method.finding_tokens);
    say("steps    {} of at most {} tokens, if every answer has {} tokens{}", stats.steps,
        engine_options.tokens_per_step, options.answer_tokens,
        stats.first_answers > 0 ? fmt::format(" and every finding {}", job.method.finding_tokens) : "");
    say("memory   {:.1f} MB of keys and values at the peak, of {:.0f} MB",
        static_cast<double>(stats.peak_pages * page_bytes) / 1e6,
        static_cast<double>(engine_options.pages * page_bytes) / 1e6);
    print_text(rejects_text(rejects, records, statistics.reject_reasons(),
                            fmt::format("a run writes all of them to {}/rejects.jsonl", job.output.path)),
               to);
  }
  if (ids && !ids->notice().empty() && !options.quiet) print_note(ids->notice());
  if (const std::string warning = rejects_warning(rejects, records); !warning.empty()) print_warning(warning);
  return rejects > 0 ? 1 : 0;
}

}  // namespace

void add_plan_command(CLI::App& app, int& exit_code) {
  auto* command = app.add_subcommand(
      "plan", "Show what a job would compute, without decoding: bins, prompts, tokens, steps, memory");
  auto options = std::make_shared<PlanOptions>();
  options->add_to(*command);
  auto* dump = command
                   ->add_option("--dump", options->dump,
                                "Write the segment graphs of the first N prompts as JSON lines")
                   ->check(whole_from<int64_t>(0));
  command->add_option("--dump-to", options->dump_path,
                      "Where to write the graphs (default: standard output)");
  command->add_option("--prompt", options->prompt, "Print the N-th prompt as text, counted from 1")
      ->check(whole_from<int64_t>(1))
      ->excludes(dump);
  command->add_option("--answer-tokens", options->answer_tokens, "Assumed length of an answer, in tokens")
      ->check(whole_from(1))
      ->capture_default_str();
  command->add_flag("--allow-empty", options->allow_empty,
                    "Accept a corpus without any record that can be used (otherwise exit code 2)");
  command->callback([options, &exit_code] { exit_code = plan(*options); });
}

}  // namespace sheaf
