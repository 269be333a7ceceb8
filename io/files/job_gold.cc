#include <algorithm>
#include <fmt/ranges.h>
#include <map>
#include <set>

#include "core/base/error.h"
#include "core/task/prompt_text.h"
#include "core/text/spelling.h"
#include "io/corpus/corpus.h"
#include "io/corpus/describe_corpus.h"
#include "io/datasets/readers.h"
#include "io/files/job_file.h"
#include "io/files/score_run.h"

namespace sheaf {
namespace {

using nlohmann::json;
using nlohmann::ordered_json;

/// Where the right values of attributes stand.
struct GoldColumns {
  std::map<std::string, std::string> of_attribute;  ///< attribute → column
  std::string object;                               ///< the column of all others; empty: none

  std::vector<std::string> names() const {
    std::set<std::string> all;
    for (const auto& [attribute, column] : of_attribute) all.insert(column);
    if (!object.empty()) all.insert(object);
    return {all.begin(), all.end()};
  }
};

std::vector<std::string> attribute_names(const Schema& schema) {
  std::vector<std::string> names;
  for (const Category& category : schema.categories)
    for (const Attribute& attribute : category.attributes)
      if (std::ranges::find(names, attribute.name) == names.end()) names.push_back(attribute.name);
  return names;
}

GoldColumns columns_like_attributes(const Job& job, const std::vector<std::string>& attributes) {
  GoldColumns columns;
  std::vector<std::string> there;
  const ordered_json about = describe_corpus(job.input.path, job.input.format);
  for (const ordered_json& column : about.at("columns")) there.push_back(column.at("name"));
  for (const std::string& name : there)
    if (std::ranges::find(attributes, name) != attributes.end()) columns.of_attribute[name] = name;
  if (columns.of_attribute.empty())
    refuse(
        "{}: no column is named like an attribute of {} (the columns are {}); name them: --gold-column "
        "ATTRIBUTE=COLUMN, or --gold-column COLUMN for a column of objects {{attribute: value}}",
        job.input.path, job.task.schema, shorten_text(fmt::format("{}", fmt::join(there, ", ")), 200));
  return columns;
}

GoldColumns named_columns(const std::vector<std::string>& given, const std::vector<std::string>& attributes) {
  GoldColumns columns;
  for (const std::string& text : given) {
    const bool known = std::ranges::find(attributes, text) != attributes.end();
    const size_t equals = text.find('=');
    if (known) {
      columns.of_attribute[text] = text;
    } else if (equals != std::string::npos) {
      const std::string attribute = text.substr(0, equals);
      if (std::ranges::find(attributes, attribute) == attributes.end())
        refuse("--gold-column {}: the schema has no attribute \"{}\"{}", text, attribute,
               suggest_spelling(attribute, attributes));
      columns.of_attribute[attribute] = text.substr(equals + 1);
    } else if (columns.object.empty()) {
      columns.object = text;
    } else {
      refuse(
          "--gold-column {} and {}: neither is an attribute, and only one column can hold the others; write "
          "ATTRIBUTE=COLUMN",
          columns.object, text);
    }
  }
  return columns;
}

/// {attribute: [values]} of the attributes that the record's category has.
json values_of(const Record& record, const Category& category, const GoldColumns& columns) {
  ordered_json given = ordered_json::object();
  if (!columns.object.empty())
    given = gold_values(ordered_json{{"gold", record.kept.value(columns.object, ordered_json())}});
  for (const auto& [attribute, column] : columns.of_attribute)
    given[attribute] = record.kept.value(column, ordered_json());
  json gold = json::object();
  const json all = gold_values(ordered_json{{"gold", std::move(given)}});
  for (const Attribute& attribute : category.attributes)
    if (all.contains(attribute.name)) gold[attribute.name] = all[attribute.name];
  return gold;
}

std::vector<std::string> texts_of(const json& cell) {
  std::vector<std::string> texts;
  for (const json& each : cell.is_array() ? cell : json::array({cell})) {
    if (each.is_null() || each == json("")) continue;
    if (each.is_structured()) reject("an answer is {}, not a text", each.is_array() ? "a list" : "an object");
    texts.push_back(each.is_string() ? each.get<std::string>() : each.dump());
  }
  return texts;
}

void check_job(const Job& job, const std::vector<std::string>& columns) {
  if (find_dataset_format(job.input.format))
    refuse("{}: the job reads the dataset {}, which has its own gold answers; name it with --gold {}",
           job.file, job.input.format, job.input.path);
  if (job.input.path == "-") refuse("{}: standard input cannot be read again; name the corpus", job.file);
  if (job.task.kind == TaskKind::extract) return;
  if (job.task.kind == TaskKind::chat) refuse("{}: requests have no right answers to score", job.file);
  if (!asks_one_question(job))
    refuse(
        "{}: the job asks several questions per record; put their answers beside them, {{\"id\", "
        "\"question\", \"answers\"}}, and name the corpus with --gold",
        job.file);
  if (columns.size() != 1)
    refuse("{}: name the column of the right answers, one: --gold-column COLUMN", job.file);
}

}  // namespace

std::vector<GoldAnswer> read_job_gold(Job job, const std::vector<std::string>& given) {
  check_job(job, given);
  const bool extract = job.task.kind == TaskKind::extract;
  const Schema schema = extract ? read_schema(job) : Schema();
  GoldColumns columns;
  if (extract) {
    const std::vector<std::string> attributes = attribute_names(schema);
    columns = given.empty() ? columns_like_attributes(job, attributes) : named_columns(given, attributes);
  }
  job.input.keep = extract ? columns.names() : given;
  job.input.places["input.keep"] = "--gold-column";
  const auto corpus = open_corpus(job, extract ? &schema : nullptr);
  std::vector<GoldAnswer> gold;
  while (const auto row = corpus->next()) {
    const auto* record = std::get_if<Record>(&*row);
    if (!record) continue;  // it has no row that could be scored
    GoldAnswer answer;
    answer.id = record->id;
    answer.place = fmt::format("{}:{}", record->place.file, record->place.row);
    try {
      if (extract)
        answer.extra = {{"category", record->category},
                        {"gold", values_of(*record, *schema.find(record->category), columns)}};
      else
        answer.references = texts_of(record->kept.value(given[0], ordered_json()));
    } catch (const BadText& bad) {
      refuse("{}: no gold answers can be read: {}", answer.place, bad.reason);
    }
    gold.push_back(std::move(answer));
  }
  if (gold.empty()) refuse("{}: the corpus has no records to score", job.input.path);
  return gold;
}

}  // namespace sheaf
