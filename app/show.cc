#include <algorithm>
#include <fmt/format.h>

#include "app/job_options.h"
#include "app/terminal.h"
#include "core/report/row_sample.h"
#include "core/text/printable.h"
#include "core/text/spelling.h"
#include "core/text/wrap.h"
#include "io/jobs/finished_run.h"

namespace sheaf {
namespace {

struct ShowOptions {
  ShowSettings settings;
  bool json = false;
};

nlohmann::ordered_json row_json(const ShownRow& row) {
  if (row.asks) {
    nlohmann::ordered_json answers = nlohmann::ordered_json::array();
    for (const AttributeValue& value : row.values.values)
      answers.push_back({{"question", value.name}, {"answer", value_for_people(value.answer.value)}});
    return {{"id", row.id}, {"document", row.document}, {"answers", std::move(answers)}};
  }
  nlohmann::ordered_json values = nlohmann::ordered_json::object();
  for (const AttributeValue& value : row.values.values)
    values[value.name] =
        is_nested(value.answer.value) ? value_json(value.answer.value) : value_for_people(value.answer.value);
  return {{"id", row.id}, {"category", row.values.category}, {"document", row.document}, {"values", values}};
}

std::string value_lines(const std::vector<AttributeValue>& values, const std::string& indent);

/// Entries as YAML has them: each begins with a dash.
std::string entry_lines(const std::vector<RowObject>& entries, const std::string& indent) {
  std::string text;
  for (const RowObject& entry : entries) {
    std::string lines = value_lines(entry.values, indent + "  ");
    if (lines.empty()) lines = "\n" + indent + "  ";
    lines.replace(lines.find_first_not_of('\n') + indent.size(), 1, "-");
    text += lines;
  }
  return text;
}

/// A line for each value, each behind a line break; what is inside of one is indented.
std::string value_lines(const std::vector<AttributeValue>& values, const std::string& indent) {
  std::string text;
  for (const AttributeValue& value : values) {
    text += fmt::format("\n{}{}:", indent, value.name);
    const std::string note = value.answer.note.empty() ? "" : " (" + value.answer.note + ")";
    if (const auto* object = std::get_if<RowObject>(&value.answer.value)) {
      text += note + value_lines(object->values, indent + "  ");
      continue;
    }
    const auto* entries = std::get_if<std::vector<RowObject>>(&value.answer.value);
    if (entries && !entries->empty()) {
      text += note + entry_lines(*entries, indent + "  ");
      continue;
    }
    const nlohmann::ordered_json shown = value_for_people(value.answer.value);
    text += fmt::format(" {}{}", shown.is_null() ? "null" : shown.get<std::string>(), note);
  }
  return text;
}

std::string values_text(const ExtractedValues& row) {
  const std::string text = value_lines(row.values, "");
  return text.empty() ? text : text.substr(1);
}

void show(const ShowOptions& options) {
  const ShownRows shown = show_rows(options.settings);
  if (options.json) {
    for (const ShownRow& row : shown.rows) print_json(row_json(row), -1);
    return;
  }
  const auto columns = static_cast<size_t>(std::clamp(terminal_columns(Stream::out), 40, 160));
  for (const ShownRow& row : shown.rows) {
    print_line(row.asks ? fmt::format("── {}", row.id)
                        : fmt::format("── {} · {}", row.id, row.values.category));
    print_text(side_by_side(printable_text(row.document), printable_text(values_text(row.values)), columns) +
               "\n");
  }
  print_line(fmt::format("{} of {}{}", std::ssize(shown.rows), counted(shown.matching, "row"),
                         shown.unfinished ? " that the run has so far; it is not finished" : ""),
             Stream::err);
}

}  // namespace

void add_show_command(Program& program) {
  auto options = std::make_shared<ShowOptions>();
  ShowSettings& settings = options->settings;
  add_command(
      program, "show", "Print rows of a run beside their documents: `sheaf show RUN --where Brand=null`",
      {{"RUN", settings.run,
        "The output folder of a run of an extract or ask job; of an unfinished one, what is committed",
        value_name("FOLDER"), kRequired},
       {"--sample", settings.sample, "How many rows to show, drawn at random",
        whole_from<int64_t>(1, 100'000), kWithDefault},
       {"--category", settings.category, "Only rows of this category", value_name("NAME")},
       {"--where", settings.where,
        "Only rows with this value, as the row has it, or with a list that holds it: Brand=null, "
        "Specialty=organic; of an ask job: answer=null",
        value_name("ATTRIBUTE=VALUE")},
       seed_option(settings.seed, "Seed of the sample"),
       place_options(settings),
       {"--json", options->json, "Print JSON lines"}},
      [options] { show(*options); });
}

}  // namespace sheaf
