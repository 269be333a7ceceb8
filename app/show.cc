#include <CLI/CLI.hpp>
#include <algorithm>
#include <fmt/format.h>
#include <memory>

#include "app/commands.h"
#include "app/option_checks.h"
#include "app/terminal.h"
#include "core/report/row_sample.h"
#include "core/text/printable.h"
#include "core/text/spelling.h"
#include "core/text/wrap.h"
#include "io/jobs/show_job.h"

namespace sheaf {
namespace {

struct ShowOptions {
  ShowSettings settings;
  bool json = false;
};

nlohmann::ordered_json row_json(const ShownRow& row) {
  nlohmann::ordered_json values = nlohmann::ordered_json::object();
  for (const AttributeValue& value : row.values.values)
    values[value.name] = value_for_people(value.answer.value);
  return {{"id", row.id}, {"category", row.values.category}, {"document", row.document}, {"values", values}};
}

std::string values_text(const ExtractedValues& row) {
  std::string text;
  for (const AttributeValue& value : row.values) {
    const nlohmann::ordered_json shown = value_for_people(value.answer.value);
    text += fmt::format("{}{}: {}{}", text.empty() ? "" : "\n", value.name,
                        shown.is_null() ? "null" : shown.get<std::string>(),
                        value.answer.note.empty() ? "" : " (" + value.answer.note + ")");
  }
  return text;
}

void show(const ShowOptions& options) {
  const ShownRows shown = show_rows(options.settings);
  if (options.json) {
    for (const ShownRow& row : shown.rows) print_json(row_json(row), -1);
    return;
  }
  const auto columns = static_cast<size_t>(std::clamp(terminal_columns(Stream::out), 40, 160));
  for (const ShownRow& row : shown.rows) {
    print_line(fmt::format("── {} · {}", row.id, row.values.category));
    print_text(side_by_side(printable_text(row.document), printable_text(values_text(row.values)), columns) +
               "\n");
  }
  print_line(fmt::format("{} of {}{}", std::ssize(shown.rows), counted(shown.matching, "row"),
                         shown.unfinished ? " that the run has so far; it is not finished" : ""),
             Stream::err);
}

}  // namespace

void add_show_command(CLI::App& app) {
  auto options = std::make_shared<ShowOptions>();
  ShowSettings& settings = options->settings;
  CLI::App* command = app.add_subcommand(
      "show", "Print rows of a run beside their documents: `sheaf show RUN --where Brand=null`");
  command
      ->add_option("RUN", settings.run,
                   "The output folder of a run of an extract job; of an unfinished one, what is committed")
      ->type_name("FOLDER")
      ->required();
  command->add_option("--sample", settings.sample, "How many rows to show, drawn at random")
      ->check(whole_from<int64_t>(1, 100'000))
      ->capture_default_str();
  command->add_option("--category", settings.category, "Only rows of this category")->type_name("NAME");
  command
      ->add_option("--where", settings.where,
                   "Only rows with this value: Brand=null or Brand=Acme, as the row has it")
      ->type_name("ATTRIBUTE=VALUE");
  command->add_option("--seed", settings.seed, "Seed of the sample")
      ->check(whole_from<uint64_t>(0))
      ->capture_default_str();
  command->add_option("--input", settings.input,
                      "Where the run's corpus is now, if it was moved or came from standard input");
  command->add_option("--schema", settings.schema, "Where the run's schema is now, if it was moved");
  command->add_flag("--json", options->json, "Print JSON lines");
  command->callback([options] { show(*options); });
}

}  // namespace sheaf
