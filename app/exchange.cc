#include "app/job_options.h"
#include "app/signals.h"
#include "app/terminal.h"
#include "core/base/error.h"
#include "core/text/format.h"
#include "core/text/json_reader.h"
#include "core/text/spelling.h"
#include "io/jobs/exchange_job.h"

namespace sheaf {
namespace {

using nlohmann::ordered_json;

struct ExportOptions : JobOptions {
  ExportSettings settings;
  std::string model, body;
};

struct ImportOptions : JobOptions {
  ImportSettings settings;
};

void print_rejects(const std::vector<std::string>& rejects, int64_t all) {
  for (const std::string& reject : rejects) print_line(reject, Stream::err);
  if (const int64_t more = all - std::ssize(rejects); more > 0)
    print_line(fmt::format("… and {} more", more), Stream::err);
}

ordered_json read_body(const ExportOptions& options) {
  ordered_json body = ordered_json::object();
  if (!options.body.empty()) {
    std::string trouble;
    body = read_json<ordered_json>(options.body, {.unique_keys = true}, &trouble);
    if (!trouble.empty()) refuse("--body: {}", trouble);
    if (!body.is_object()) refuse("--body must be a JSON object, such as {{\"temperature\": 0}}");
  }
  if (body.contains("messages")) refuse("--body: the messages are the job's prompts; leave them out");
  if (!options.model.empty()) body["model"] = options.model;
  return body;
}

int export_job(ExportOptions& options) {
  stop_in_order();
  options.settings.body = read_body(options);
  const ExportEnd end = export_requests(options.read(), options.settings);
  for (const std::string& notice : end.notices) print_note(notice);
  if (!end.finished) {
    print_note("interrupted; nothing was written");
    return 130;
  }
  print_rejects(end.rejects, end.rejected);
  if (options.json)
    print_json({{"path", options.settings.to},
                {"records", end.records},
                {"requests", end.requests},
                {"bytes", end.bytes},
                {"without_row", end.without_row},
                {"rejects", end.rejected}});
  else if (!options.quiet)
    print_line(fmt::format("{} about {} in {}, {}", counted(end.requests, "request"),
                           counted(end.records, "record"), options.settings.to, size_text(end.bytes)));
  if (!options.json && !options.quiet && end.without_row > 0)
    print_line(fmt::format("{} left out: {} has no row of them", counted(end.without_row, "record"),
                           options.settings.judge));
  return end.rejected == 0 ? 0 : 1;
}

int import_job(const ImportOptions& options) {
  stop_in_order();
  const ImportSettings& settings = options.settings;
  if (settings.judge && settings.restart) refuse("--restart does not work with --judge, which writes a file");
  const ImportEnd end = import_replies(options.read(), settings);
  if (!end.notice.empty()) print_note(end.notice);
  if (!end.finished) {
    print_note(settings.judge ? "interrupted; nothing was written"
                              : "interrupted; import again with --restart");
    return 130;
  }
  print_rejects(end.rejects, end.rejected);
  if (options.json)
    print_json({{"path", settings.to}, {"rows", end.rows}, {"rejects", end.rejected}});
  else if (!options.quiet)
    print_line(fmt::format("{} in {}, {}", counted(end.rows, settings.judge ? "judged record" : "row"),
                           settings.to, counted(end.rejected, "reject")));
  return end.rejected == 0 ? 0 : 1;
}

}  // namespace

void add_export_command(Program& program) {
  auto options = std::make_shared<ExportOptions>();
  add_command(
      program, "export",
      "Write a job's prompts as an OpenAI batch file, one request per record or question, for a "
      "service that is to be teacher or judge",
      {options->arguments(),
       {"OUT", options->settings.to, "The file to write, JSON lines", kRequired},
       {"--model", options->model, "The service's name of the model, for every request", value_name("NAME")},
       {"--body", options->body,
        "A JSON object with more keys for every request: '{\"temperature\": 0, \"max_tokens\": 500}'",
        value_name("JSON")},
       {"--judge", options->settings.judge,
        "Ask about the values of this run, as a judge of llm-f1, not for values (extract)",
        value_name("FOLDER")}},
      [options] { return export_job(*options); })
      .footer("docs/exchange.md shows the whole way. The job's own model is not opened.");
}

void add_import_command(Program& program) {
  auto options = std::make_shared<ImportOptions>();
  ImportSettings& settings = options->settings;
  add_command(
      program, "import",
      "Make a service's replies to `sheaf export` a finished run of the job, for score, review and "
      "train-data",
      {options->arguments(),
       {"OUT", settings.to, "The run's folder, a new one; with --judge the file to write", kRequired},
       {"REPLIES", settings.replies,
        "The output file of the batch, and its file of errors if there is one (JSON lines)", kRequired},
       {"--judge", settings.judge,
        "The replies are those of a judge (export --judge); write them for `sheaf score --judgements`"},
       {"--restart", settings.restart, "Replace the run that OUT holds"}},
      [options] { return import_job(*options); })
      .footer("docs/exchange.md says what is rejected and why.");
}

}  // namespace sheaf
