#include "io/jobs/finished_run.h"

#include <algorithm>
#include <filesystem>

#include "core/base/error.h"
#include "core/report/report.h"
#include "core/text/spelling.h"
#include "core/text/utf8.h"
#include "io/base/file_identity.h"
#include "io/base/file_layer.h"
#include "io/base/job_changes.h"
#include "io/base/mapped_file.h"
#include "io/base/sha256.h"
#include "io/corpus/corpus.h"
#include "io/files/job_file.h"
#include "io/files/job_fingerprint.h"
#include "io/files/predictions.h"
#include "io/run_folder/journal.h"
#include "io/run_folder/manifest.h"
#include "io/run_folder/read_rows.h"

namespace sheaf {
namespace {

using nlohmann::ordered_json;

void check_folder(const std::string& run) {
  if (std::error_code ignored; !std::filesystem::is_directory(run, ignored))
    refuse("{}: no such folder; name the output folder of a run", run);
}

Manifest open_run(const std::string& run, bool unfinished) {
  check_folder(run);
  const bool finished = file_size(run + "/_SUCCESS").has_value();
  if (!finished && unfinished) return committed_so_far(run);
  if (!finished) refuse("{}: the folder has no finished run; finish it first (`sheaf run` resumes it)", run);
  return read_manifest(run, "run the job again with --restart");
}

/// A key of the fingerprint, which a stranger may have written.
const ordered_json& member(const ordered_json& from, const std::string& key, const std::string& run) {
  const auto at = from.is_object() ? from.find(key) : from.end();
  if (at == from.end())
    refuse("{}/manifest.json: the fingerprint lacks {}; run the job again with --restart", run, key);
  return *at;
}

/// The parts of the run's job that decide how its corpus is read.
Job job_of(const Manifest& manifest, const std::string& run, bool or_asks) {
  const ordered_json& saved = member(manifest.fingerprint, "job", run);
  const ordered_json& input = member(saved, "input", run);
  Job job;
  job.file = run + "/manifest.json";
  try {
    const auto kind = member(member(saved, "task", run), "kind", run).get<std::string>();
    if (or_asks && kind == word_of(TaskKind::ask)) {
      job.task.kind = TaskKind::ask;
      const auto text = [&](const char* key) { return input.value(key, std::string()); };
      job.input.path = manifest.sources.input;
      job.input.format = text("format");
      job.input.dataset.split = text("split");
      job.input.dataset.turns = input.value("turns", job.input.dataset.turns);
      for (const auto& [key, column] :
           {std::pair("id", &job.input.id), std::pair("context", &job.input.context),
            std::pair("context_id", &job.input.context_id), std::pair("documents", &job.input.documents),
            std::pair("questions", &job.input.questions), std::pair("question", &job.input.question),
            std::pair("options", &job.input.options)})
        *column = text(key);
      const bool passages = manifest.fingerprint.contains("passages");
      if (passages || !job.input.documents.empty())
        refuse(
            "{}: the questions of this run are about lists of documents (input.{}); a page shows one context "
            "for each question",
            run, passages ? "corpus" : "documents");
      return job;
    }
    if (kind != word_of(TaskKind::extract))
      refuse(
          "{}: this is the run of a job of task.kind {}; only runs of extract jobs have values to show; read "
          "its "
          "rows-*.jsonl, or `sheaf report {}`",
          run, kind, run);
    job.task.kind = TaskKind::extract;
    job.input.path = manifest.sources.input;
    job.input.format = member(input, "format", run).get<std::string>();
    job.input.dataset.split = member(input, "split", run).get<std::string>();
    job.input.id = member(input, "id", run).get<std::string>();
    job.input.category = member(input, "category", run).get<std::string>();
    job.input.document = member(input, "document", run).get<std::vector<std::string>>();
  } catch (const ordered_json::exception&) {
    refuse("{}: a key of the fingerprint has the wrong type; run the job again with --restart", job.file);
  }
  return job;
}

/// The sum of standard input is over all of it, however long it was.
std::vector<ordered_json> whole_file(const std::string& path) {
  Sha256 sum;
  int64_t bytes = 0;
  read_pieces(path, [&](std::string_view piece) {
    sum.add(piece);
    bytes += static_cast<int64_t>(piece.size());
  });
  return {{{"bytes", bytes}, {"sha256", sum.hex()}}};
}

/// Makes `job` read the corpus of the run, and no other.
void find_corpus(const RunPlaces& places, const Manifest& manifest, Job& job) {
  const ordered_json& before = member(manifest.fingerprint, "corpus", places.run);
  const bool piped = before.size() == 1 && before.contains("-");
  if (places.input.empty()) {
    if (piped)
      refuse("{}: the run read standard input, which is gone; name a file with the same text with --input",
             places.run);
    if (job.input.path.empty())
      refuse("{}: the run does not say where its corpus is; name it with --input", places.run);
    const std::string where = fmt::format("{}: the corpus of the run: ", places.run);
    ordered_json now;
    try {
      now = corpus_fingerprint(job.input);
    } catch (const Error& error) {
      if (error.fault() != Fault::input) throw;
      refuse("{}{}; name where it is now with --input", where, error.what());
    }
    if (const auto changes = list_changes(before, now); !changes.empty())
      refuse("{}{} changed since: {}; restore it, or name a copy of what the run read with --input", where,
             job.input.path, changes[0]);
    return;
  }
  job.input.path = places.input;
  if (piped && job.input.format == "auto") job.input.format = "jsonl";
  const auto now = piped ? whole_file(places.input) : corpus_contents(corpus_fingerprint(job.input));
  if (now != corpus_contents(before) && !places.key.empty())
    refuse("{}: {} was run over another corpus than {}; run it again over this one", places.key, places.run,
           places.input);
  if (now != corpus_contents(before))
    refuse("--input: {} is not what {} was run on; name the same files, in the same order", places.input,
           places.run);
}

/// Where the schema of the run is.
std::string find_schema(const RunPlaces& places, const Manifest& manifest) {
  const bool named = !places.schema.empty();
  std::string path = named ? places.schema : manifest.sources.schema;
  if (path.empty()) refuse("{}: the run does not say where its schema is; name it with --schema", places.run);
  if (!named && !file_size(path))
    refuse("{}: the schema of the run, {}, is gone; name where it is now with --schema", places.run, path);
  const bool same = identity_json(identify_file(path, Look::every_byte)) ==
                    member(manifest.fingerprint, "schema", places.run);
  if (!same && !places.key.empty())
    refuse(
        "{}: {} was run with another schema than {}, or with an earlier one of it; run it again with this "
        "one",
        places.key, places.run, path);
  if (!same)
    refuse("{}: the schema changed since {} was run; restore it, or name the schema of the run with --schema",
           path, places.run);
  return path;
}

}  // namespace

RunTypes types_of_run(const std::string& run, const std::function<void(const std::string& text)>& note) {
  if (!file_size(run + "/manifest.json")) return {};
  RunTypes types;
  try {
    const Manifest manifest = read_manifest(run, "run the job again with --restart");
    if (manifest.sources.schema.empty()) return {};
    const ordered_json& input = member(member(manifest.fingerprint, "job", run), "input", run);
    if (const auto locale = input.find("locale"); locale != input.end() && locale->is_string())
      types.locale = locale->get<std::string>();
    types.schema = find_schema({run, "", ""}, manifest);
  } catch (const Error& error) {
    if (error.fault() != Fault::input) throw;
    note(fmt::format("gold values are compared as text: {}", error.what()));
  }
  return types;
}

void take_types(ScoreSettings& settings, const std::function<void(const std::string& text)>& note) {
  if (settings.metric != "attributes" || !settings.job.empty()) return;
  const RunTypes types = types_of_run(settings.predictions, [&](const std::string& text) {
    if (settings.schema.empty()) note(text);
  });
  if (settings.schema.empty()) settings.schema = types.schema;
  settings.locale = types.locale;
}

void check_attribute(const char* option, const std::string& name, const Schema& schema,
                     const std::string& category) {
  std::vector<std::string> known;
  for (const Category& each : schema.categories)
    if (category.empty() || each.name == category)
      for (const Attribute& attribute : each.attributes)
        if (std::ranges::find(known, attribute.name) == known.end()) known.push_back(attribute.name);
  if (std::ranges::find(known, name) == known.end())
    refuse("{}: the schema has no attribute \"{}\"{}", option, shorten_text(name, 60),
           suggest_spelling(name, known));
}

FinishedRun::FinishedRun(const RunPlaces& places, bool unfinished, bool or_asks)
    : run_(places.run),
      manifest_(open_run(places.run, unfinished)),
      job_(job_of(manifest_, places.run, or_asks)) {
  if (!asks()) {
    schema_path_ = find_schema(places, manifest_);
    schema_ = read_schema(schema_path_);
  }
  find_corpus(places, manifest_, job_);
  const ordered_json& input = manifest_.fingerprint.at("job").at("input");
  reads_html_ = input.value("html", ordered_json()) == word_of(Html::text);
  job_.input.html = Html::keep;  // spans point into the columns as they are
  files_ = find_corpus_files(job_.input).files;
}

/// Rows stand in the order of their records, which are more: some were rejected.
std::vector<Record> FinishedRun::records(const std::set<int64_t>& rows,
                                         const std::function<const std::string*(int64_t row)>& id_of) const {
  std::vector<Record> found;
  const RejectedRecords rejected(run_, manifest_, files_);
  const auto corpus = open_corpus(job_, asks() ? nullptr : &schema_);
  corpus->skip_to(manifest_.first);
  int64_t row = 0;
  for (auto next = rows.begin(); next != rows.end();) {
    auto entry = corpus->next();
    auto* record = entry ? std::get_if<Record>(&*entry) : nullptr;
    if (entry && (!record || rejected.has(record->place))) continue;
    const std::string* id = id_of(row);
    if (!record || (id && valid_utf8(id_text(record->id)) != *id))
      refuse(
          "{}: the corpus does not have the record {} where the run has its row; run the job again with "
          "--restart",
          run_, id ? shown(*id) : std::to_string(row + 1));
    if (row++ != *next) continue;
    found.push_back(std::move(*record));
    ++next;
  }
  return found;
}

NamedReport read_run_report(std::string run, const std::function<void(const std::string& text)>& note) {
  if (run.ends_with("/report.json")) run.resize(run.size() - std::string_view("/report.json").size());
  if (const std::string path = run + "/report.json"; file_size(path)) return {run, read_report_file(path)};
  check_folder(run);
  const std::string path = run + "/progress.json";
  const auto saved = read_whole(path);
  if (!saved)
    refuse(
        "{}: the folder has no report.json; name the output folder of a run that has finished, or that has "
        "been running "
        "for some seconds",
        run);
  NamedReport report{run, read_saved_report(*saved, path).report};
  note(run + ": this run is not finished; the report covers what is saved so far");
  return report;
}

}  // namespace sheaf
