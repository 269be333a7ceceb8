#include <fnmatch.h>

#include "core/base/error.h"
#include "io/base/file_layer.h"
#include "io/base/paths.h"
#include "io/base/sha256.h"
#include "io/files/job_paths.h"
#include "io/jobs/run_job.h"
#include "io/run_folder/check_run.h"
#include "io/run_folder/output_place.h"
#include "io/run_folder/publish.h"

namespace sheaf {
namespace {

bool fits_folder(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_';
}

/// Refuses to publish where the corpus of the next night would find it.
void check_apart(const Job& job, const std::string& out) {
  if (!is_uri(job.input.path)) {
    const StoreUri place = parse_store_uri(job.output.path);
    if (place.scheme != "file") return;
    Job local = job;
    local.output.path = "/" + place.key;
    return check_output_apart(local);
  }
  const StoreUri input = parse_store_uri(job.input.path);
  const bool inside =
      input.has_wildcards()
          ? ::fnmatch(input.name().c_str(), (out + "/rows-00000.jsonl").c_str(), FNM_PATHNAME) == 0
          : (out + "/").starts_with(input.name() + (input.key.empty() ? "" : "/"));
  if (inside)
    refuse("output.path: {} is inside the corpus ({}); choose a folder outside it", out, input.name());
}

/// The local folder of a job whose output.path is a URI.
std::string work_folder(const Job& job) {
  if (!job.output.work.empty()) return job.output.work;
  const std::string cache = user_cache();
  if (cache.empty())
    refuse(
        "{}: output.path is a URI, and neither HOME nor XDG_CACHE_HOME is set; set output.work to a local "
        "folder",
        job.file);
  const std::string name = parse_store_uri(job.output.path).name();
  std::string last = name.substr(name.rfind('/') + 1);
  for (char& c : last) c = fits_folder(c) ? c : '-';
  return fmt::format("{}/runs/{}-{}", cache, last, sha256(name).substr(0, 12));
}

}  // namespace

RunEnd run_stored_job(const Job& asked, const RunSettings& settings, RunListener& listener) {
  if (settings.keep_previous)
    refuse("--keep-previous works only with a local output.path; {} is a URI", asked.output.path);
  const auto store = open_store(asked.output.path);
  check_apart(asked, store->name());
  Job job = asked;
  job.output.path = work_folder(asked);
  job.output.dated = false;
  check_store_apart(job);
  check_store(*store, job.output.path, settings.restart);
  // The same command after a restart whose publication broke off must not compute everything again.
  RunSettings local = settings;
  local.published_to = asked.output.path;
  local.take_finished = settings.restart && is_unpublished(*store, job.output.path) &&
                        check_run(job.output.path).troubles.empty();
  RunEnd end = run_job(job, local, listener);
  const bool unpublished = local.take_finished && end.was_finished;
  if (!end.interrupted.empty() && asked.output.dated)
    end.interrupted +=
        fmt::format(" (with --set output.path={}, for the path has the date in it)", asked.output.path);
  if (!end.interrupted.empty() || end.exit_code > 1) return end;
  if (!end.was_finished) listener.note(fmt::format("publishing {} to {}", job.output.path, store->name()));
  const int64_t files = publish_run(*store, job.output.path, settings.restart);
  if (end.was_finished)
    listener.note(files == 0 ? fmt::format("{} has this run already", store->name())
                             : fmt::format("published {} to {}", job.output.path, store->name()));
  if (unpublished)
    listener.note(
        fmt::format("{} now has the run that the earlier command finished; to decode everything again, add "
                    "--restart once more",
                    store->name()));
  return end;
}

}  // namespace sheaf
