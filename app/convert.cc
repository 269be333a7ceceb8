#include "io/datasets/convert.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <fmt/format.h>
#include <map>
#include <memory>

#include "app/commands.h"
#include "app/option_checks.h"
#include "app/terminal.h"
#include "core/base/error.h"
#include "core/text/spelling.h"
#include "io/base/descriptor.h"
#include "io/base/file_layer.h"
#include "io/base/named_output.h"
#include "io/datasets/dataset.h"
#include "io/datasets/needle.h"
#include "io/model/model_files.h"

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

int convert_needle(ConvertOptions options) {
  check_not_read(options.to, {options.from});
  check_readable(options.from);
  const auto book = read_whole(options.from);
  if (!book) refuse("{}: no such file; needle needs a book as plain text", options.from);
  if (const std::string other = likely_format("needle", options.from); !other.empty())
    refuse("{}: this looks like {}; needle needs a book as plain text", options.from, other);
  LoadedTokenizer tokenizer;
  if (!options.model.empty()) {
    tokenizer = load_tokenizer(options.model);
    options.needle.measure = [&](const std::string& text) {
      Tokens tokens;
      tokenizer.tokenizer->encode(text, false, tokens);
      return static_cast<int64_t>(tokens.size());
    };
  }
  CorpusWriter writer(options.to, TaskKind::ask);
  Converted done;
  for (const auto& row : make_needles(*book, options.from, options.needle)) {
    writer.add(row);
    ++done.rows;
    done.questions += static_cast<int64_t>(row["questions"].size());
  }
  writer.finish();
  print(options, TaskKind::ask, done);
  return 0;
}

std::string format_list() {
  std::string text = "Formats, and what to give as IN:\n";
  for (const DatasetFormat& format : dataset_formats())
    text += fmt::format("  {:12} {}\n", format.name, format.input);
  return text + fmt::format("  {:12} {}\n", "needle", "a book (plain text), to hide made-up facts in") +
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

void add_convert_command(CLI::App& app, int& exit_code) {
  auto* command = app.add_subcommand(
      "convert", "Convert a public dataset, as downloaded, to a corpus with its gold answers");
  auto options = std::make_shared<ConvertOptions>();
  std::vector<std::string> names = {"needle"};
  for (const DatasetFormat& format : dataset_formats()) names.push_back(format.name);
  command->add_option("FORMAT", options->format, "The dataset's format")->required()->check(one_of(names));
  command->add_option("IN", options->from, "The dataset's file or folder")->required();
  command->add_option("OUT", options->to, "The corpus to write: .parquet or .jsonl")->required();
  command->add_option("--limit", options->settings.limit, "Read at most N entries (0: all)")
      ->check(whole_from<int64_t>(0));
  command->add_option("--split", options->settings.dataset.split, "narrativeqa: which split to read")
      ->check(one_of({"train", "valid", "test"}))
      ->capture_default_str();
  command
      ->add_option("--turns", options->settings.dataset.turns,
                   "quac: how many earlier turns of the dialog, with their answers, to put before a question")
      ->check(whole_from(0, 100))
      ->capture_default_str();
  command->add_option("--schema", options->settings.schema,
                      "oa-mine, ae-110k: also write the attributes found to this schema file");
  NeedleOptions& needle = options->needle;
  command->add_option("--count", needle.count, "needle: how many documents to make")
      ->check(whole_from(1))
      ->capture_default_str();
  command->add_option("--questions", needle.questions, "needle: questions per document")
      ->check(whole_from(1))
      ->capture_default_str();
  command
      ->add_option("--length", needle.length, "needle: words of the book per document; with --model, tokens")
      ->check(whole_from(1))
      ->capture_default_str();
  command
      ->add_option("--model", options->model,
                   "needle: the model or tokenizer that --length counts tokens with")
      ->type_name("MODEL");
  command
      ->add_option("--shots", needle.shots,
                   "needle: how many answered questions to put at the end of a document")
      ->check(whole_from(0))
      ->capture_default_str();
  command->add_option("--seed", needle.seed, "needle: the seed of the facts and excerpts")
      ->check(whole_from<uint64_t>(0))
      ->capture_default_str();
  command->add_flag("--dogs", needle.dogs, "needle: ask only about the fur of dogs, as in Hydragen");
  command->add_flag("--json", options->json, "Print the counts as JSON");
  command->footer(format_list());
  command->callback([options, command, &exit_code] {
    check_options(*command, options->format);
    exit_code = options->format == "needle" ? convert_needle(*options) : convert(*options);
  });
}

}  // namespace sheaf
