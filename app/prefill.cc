#include "app/job_options.h"
#include "app/progress.h"
#include "app/signals.h"
#include "app/terminal.h"
#include "core/base/error.h"
#include "core/text/format.h"
#include "core/text/spelling.h"
#include "io/jobs/prefill_job.h"

namespace sheaf {
namespace {

int prefill(const JobOptions& options) {
  stop_in_order();
  Job job = options.read();
  job.input.needs_questions = false;
  OpenedJob opened(std::move(job));
  if (!take_input(opened)) return 130;
  ShownRun shown(options.quiet || options.json);
  const PrefillEnd end = prefill_job(opened, shown);
  const std::string& folder = opened.job().engine.kv_store.path;
  if (options.json)
    print_json({{"records", end.records},
                {"rejects", end.rejects},
                {"computed_tokens", end.computed_tokens},
                {"kept_tokens", end.store.kept_tokens},
                {"kept_bytes", end.store.kept_bytes},
                {"known_tokens", end.read_tokens},
                {"unkept_tokens", end.store.unkept_tokens},
                {"removed_bytes", end.store.removed_bytes},
                {"seconds", end.seconds},
                {"finished", end.finished}});
  else if (!options.quiet)
    print_line(fmt::format("{}: {} tokens computed and kept ({}), {} were there; {:.1f} s; {}",
                           counted(end.records, "record"), end.store.kept_tokens,
                           size_text(end.store.kept_bytes), end.read_tokens, end.seconds, folder));
  if (end.rejects > 0)
    print_warning(
        fmt::format("{} could not be used; the first: {}", counted(end.rejects, "record"), end.first_reject));
  if (!end.finished) {
    print_note("interrupted; what was kept is safe; rerun the same command to resume");
    return 130;
  }
  if (end.store.unkept_tokens > 0)
    fail_for_now(
        "{}: sheaf computed {} tokens but could not keep them, for the reason above; fix that and rerun the "
        "same command",
        folder, end.store.unkept_tokens);
  if (end.records == 0) refuse("{}: no record could be used", opened.job().input.path);
  return end.rejects > 0 ? 1 : 0;
}

}  // namespace

void add_prefill_command(Program& program) {
  auto options = std::make_shared<JobOptions>();
  add_command(
      program, "prefill",
      "Fill a job's store of keys and values (engine.kv_store) for its documents, whose questions need not "
      "be known yet",
      {options->arguments()}, [options] { return prefill(*options); });
}

}  // namespace sheaf
