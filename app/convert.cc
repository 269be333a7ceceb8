#include <algorithm>
#include <map>

#include "app/job_options.h"
#include "app/terminal.h"
#include "core/base/error.h"
#include "core/text/spelling.h"
#include "io/base/named_output.h"
#include "io/datasets/dataset.h"
#include "io/jobs/needle_corpus.h"

namespace sheaf {
namespace {

constexpr int64_t kShownRejects = 20;

struct ConvertOptions {
  std::string format, from, to, model;
  ConvertSettings settings;
  NeedleOptions needle;
  bool json = false;
};

void print(const ConvertOptions& options, TaskKind task, const Converted& done) {
  if (options.json) {
    nlohmann::ordered_json out{{"records", done.rows}};
    if (task == TaskKind::ask)
      out.update({{"questions", done.questions}, {"unanswerable", done.unanswerable}});
    out.update({{"rejects", done.rejects}, {"path", options.to}});
    return print_json(out);
  }
  std::string text = counted(done.rows, task == TaskKind::ask ? "context" : "document");
  if (task == TaskKind::ask) text += " with " + counted(done.questions, "question");
  if (task == TaskKind::ask && done.unanswerable > 0)
    text += fmt::format(", {} of them unanswerable,", done.unanswerable);
  text += " in " + options.to;
  if (!options.settings.schema.empty()) text += ", their attributes in " + options.settings.schema;
  if (done.rejects > 0)
    text += fmt::format("; left out {} broken entr{}", done.rejects, done.rejects == 1 ? "y" : "ies");
  print_line(text);
}

int convert(const ConvertOptions& options) {
  if (options.format == "needle") {
    print(options, TaskKind::ask, write_needles(options.from, options.to, options.model, options.needle));
    return 0;
  }
  check_not_read(options.to, {options.from});
  int64_t shown = 0;
  const Converted done =
      convert_dataset(options.format, options.from, options.to, options.settings, [&](const DatasetRow& row) {
        if (++shown > kShownRejects) return;
        print_line(fmt::format("{}: {}", place_text(row), row.error), Stream::err);
      });
  if (shown > kShownRejects) print_line(fmt::format("… and {} more", shown - kShownRejects), Stream::err);
  print(options, find_dataset_format(options.format)->task, done);
  return done.rejects > 0 ? 1 : 0;
}

std::string format_list() {
  std::string text = "Formats, and what to give as IN:\n";
  for (const DatasetFormat& format : dataset_formats())
    text += fmt::format("  {:14} {}\n", format.name, format.input);
  return text + fmt::format("  {:14} {}\n", "needle", "a book (plain text), to hide made-up facts in") +
         "\nJobs can also read a dataset as it is: input: {path: dev-v2.0.json, format: squad}.\n"
         "docs/datasets.md says where to get each dataset and what the corpus contains.";
}

/// An option that was given and means nothing for the format is a mistake.
void check_options(const CLI::App& command, const std::string& format) {
  const std::map<std::string, std::vector<std::string>> only = {
      {"--split", {"narrativeqa"}}, {"--turns", {"quac"}},       {"--schema", {"oa-mine", "ae-110k"}},
      {"--count", {"needle"}},      {"--questions", {"needle"}}, {"--length", {"needle"}},
      {"--model", {"needle"}},      {"--shots", {"needle"}},     {"--seed", {"needle"}},
      {"--dogs", {"needle"}}};
  for (const auto& [option, formats] : only)
    if (command.count(option) > 0 && std::find(formats.begin(), formats.end(), format) == formats.end())
      refuse("{} works only with {}; leave it out for {}", option, fmt::join(formats, " and "), format);
  if (format == "needle" && command.count("--limit") > 0)
    refuse("--limit does not work with needle; use --count to set how many documents to make");
}

}  // namespace

void add_convert_command(Program& program) {
  auto options = std::make_shared<ConvertOptions>();
  std::vector<std::string> names = {"needle"};
  for (const DatasetFormat& format : dataset_formats()) names.push_back(format.name);
  ConvertSettings& settings = options->settings;
  NeedleOptions& needle = options->needle;
  CLI::App& command = add_command(
      program, "convert", "Convert a public dataset, as downloaded, to a corpus with its gold answers",
      {{"FORMAT", options->format, "The dataset's format", kRequired, one_of(names)},
       {"IN", options->from, "The dataset's file or folder", kRequired},
       {"OUT", options->to, "The corpus to write: .parquet or .jsonl", kRequired},
       {"--limit", settings.limit, "Read at most N entries (0: all)", whole_from<int64_t>(0)},
       {"--split", settings.dataset.split, "narrativeqa: which split to read",
        one_of({"train", "valid", "test"}), kWithDefault},
       {"--turns", settings.dataset.turns,
        "quac: how many earlier turns of the dialog, with their answers, to put before a question",
        whole_from(0, 100), kWithDefault},
       {"--schema", settings.schema, "oa-mine, ae-110k: also write the attributes found to this schema file"},
       {"--count", needle.count, "needle: how many documents to make", whole_from(1), kWithDefault},
       {"--questions", needle.questions, "needle: questions per document", whole_from(1), kWithDefault},
       {"--length", needle.length, "needle: words of the book per document; with --model, tokens",
        whole_from(1), kWithDefault},
       {"--model", options->model, "needle: the model or tokenizer that --length counts tokens with",
        value_name("MODEL")},
       {"--shots", needle.shots, "needle: how many answered questions to put at the end of a document",
        whole_from(0), kWithDefault},
       seed_option(needle.seed, "needle: the seed of the facts and excerpts"),
       {"--dogs", needle.dogs, "needle: ask only about the fur of dogs, as in Hydragen"},
       {"--json", options->json, "Print the counts as JSON"}},
      [options, &program] {
        check_options(*program.app.get_subcommand("convert"), options->format);
        return convert(*options);
      });
  command.footer(format_list());
}

}  // namespace sheaf
