#include "app/job_options.h"
#include "app/signals.h"
#include "app/terminal.h"
#include "core/base/error.h"
#include "core/report/report.h"
#include "core/segments/stack.h"
#include "core/text/spelling.h"
#include "core/text/utf8.h"
#include "io/base/named_output.h"
#include "io/files/job_fingerprint.h"
#include "io/files/predictions.h"
#include "io/jobs/plan_job.h"
#include "io/run_folder/output_place.h"

namespace sheaf {
namespace {

struct PlanOptions : JobOptions {
  int64_t dump = 0;
  std::string dump_path = "-";
  int64_t prompt = 0;  ///< to show as text, from 1; 0: none
  int32_t answer_tokens = 8;
  bool allow_empty = false;
  ReuseWish reuse;
};

int plan(const PlanOptions& options) {
  stop_in_order();
  OpenedJob opened(options.read());
  if (!take_input(opened)) return 130;
  const Job& job = opened.job();
  std::optional<NamedOutput> file;
  if (options.dump > 0 && options.dump_path != "-") file.emplace(options.dump_path, paths_read(job));
  std::string graphs;
  const auto on_prompt = [&](int64_t number, const Stack& stack, const std::vector<Record>& records) {
    const auto id = [&](int32_t record) { return records[static_cast<size_t>(record)].id; };
    if (number == options.prompt)
      print_text(prompt_text(number, stack, opened.tokenizer(),
                             [&](int32_t record) { return id_text(id(record)); }));
    if (number > options.dump) return;
    const std::string graph = dump_stack(stack, id);
    if (file)
      graphs += graph + '\n';
    else
      print_json_text(graph);
  };
  std::optional<EarlierRuns> earlier;
  if (!options.reuse.runs_of(job).empty()) {
    earlier.emplace(options.reuse, job, std::vector<std::string>{job.output.path},
                    answer_settings(job, opened.on_gpu()));
    for (const std::string& notice : earlier->notices())
      if (!options.quiet) print_note(notice);
    for (const std::string& warning : earlier->warnings()) print_warning(warning);
  }
  const std::optional<JobPlan> made =
      plan_job(opened, options.answer_tokens, options.allow_empty, on_prompt, earlier ? &*earlier : nullptr);
  if (!made) return 130;
  if (file) file->write(graphs);
  if (options.prompt > made->stacks())
    refuse("--prompt {}: the job has only {}; name one of them", options.prompt,
           counted(made->stacks(), "prompt"));
  // A dump or a prompt on standard output stays by itself; the summary then goes to standard error.
  const bool taken = options.prompt > 0 || (options.dump > 0 && options.dump_path == "-");
  const Stream to = taken ? Stream::err : Stream::out;
  if (options.json)
    print_json(made->json(), 2, to);
  else if (!options.quiet)
    print_text(made->text(job), to);
  if (!made->duplicates.empty() && !options.quiet) print_note(made->duplicates);
  if (const std::string warning =
          rejects_warning(made->read.rejects, made->read.records + made->read.rejects);
      !warning.empty())
    print_warning(warning);
  return made->read.rejects > 0 ? 1 : 0;
}

}  // namespace

void add_plan_command(Program& program) {
  auto options = std::make_shared<PlanOptions>();
  add_command(program, "plan",
              "Show what a job would compute, without decoding: bins, prompts, tokens, steps, memory",
              {options->arguments(),
               {"--dump", options->dump, "Write the segment graphs of the first N prompts as JSON lines",
                whole_from<int64_t>(0)},
               {"--dump-to", options->dump_path, "Where to write the graphs (default: standard output)"},
               {"--prompt", options->prompt, "Print the N-th prompt as text, counted from 1",
                whole_from<int64_t>(1), works_without("--dump")},
               {"--answer-tokens", options->answer_tokens, "Assumed length of an answer, in tokens",
                whole_from(1), kWithDefault},
               reuse_options(options->reuse),
               {"--allow-empty", options->allow_empty,
                "Accept a corpus without any record that can be used (otherwise exit code 2)"}},
              [options] { return plan(*options); });
}

}  // namespace sheaf
