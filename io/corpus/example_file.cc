#include "io/corpus/example_file.h"

#include <algorithm>

#include "core/base/error.h"
#include "core/task/write_value.h"
#include "io/corpus/record_mapper.h"
#include "io/datasets/entry.h"
#include "io/datasets/gold.h"

namespace sheaf {
namespace {

using nlohmann::json;
using nlohmann::ordered_json;

constexpr std::string_view kExampleForms =
    "task.examples must name records with a \"gold\" column (.jsonl or .parquet), or oa-mine or ae-110k as "
    "downloaded";

/// The job as one that reads the columns of `sheaf convert` and `sheaf review`.
Job with_usual_columns(Job job) {
  job.input.document = {"document"};
  if (!job.input.category.empty()) job.input.category = "category";
  return job;
}

Job without_id(Job job) {
  job.input.id.clear();
  return job;
}

class ExampleReader {
 public:
  ExampleReader(const Job& job, const Schema& schema)
      : job_(without_id(job)),
        usual_job_(with_usual_columns(job_)),
        schema_(schema),
        own_(job_, &schema),
        usual_(usual_job_, &schema),
        choice_(job.task.examples.per_category, job.task.examples.seed) {}

  Examples read() {
    const std::string& path = job_.task.examples.path;
    const auto rows = open_gold("auto", path, kExampleForms);
    while (auto row = rows->next()) {
      try {
        if (!row->error.empty()) throw BadEntry{row->error};
        add(*row);
      } catch (const BadEntry& bad) {
        refuse("{}: task.examples: {}", place_text(*row), bad.reason);
      }
    }
    Examples examples{choice_.take()};
    if (examples.by_category.empty() && job_.task.examples.per_category > 0)
      refuse("{}: task.examples: no record gives an attribute of its category in {} a value", path,
             job_.task.schema);
    return examples;
  }

 private:
  /// Whether the row has the columns that the job names.
  static bool has_columns(const ordered_json& cells, const RecordMapper& mapper) {
    return std::ranges::all_of(mapper.columns(),
                               [&](const MappedColumn& column) { return cells.contains(column.name); });
  }

  void add(const DatasetRow& row) {
    if (!row.cells.is_object()) bad_entry("this is not a JSON object");
    const bool usual = !has_columns(row.cells, own_) && has_columns(row.cells, usual_);
    const std::string& column = (usual ? usual_job_ : job_).input.category;
    if (const auto category = row.cells.find(column); !column.empty() && category != row.cells.end() &&
                                                      category->is_string() &&
                                                      !schema_.find(category->get<std::string>()))
      return;
    auto mapped = (usual ? usual_ : own_).map(row.place, row.cells, 0);
    if (const auto* reject = std::get_if<Reject>(&mapped)) throw BadEntry{reject->reason};
    auto& record = std::get<Record>(mapped);
    json gold = gold_values(row.cells);
    // A person found these wrong, null among them, and did not say what is right.
    const json wrong = wrong_values(row.cells);
    bool known = false;
    for (const Attribute& attribute : schema_.find(record.category)->attributes) {
      const auto value = gold.find(attribute.name);
      known = known || (value != gold.end() && write_value(attribute, *value));
      if (value == gold.end() && job_.task.examples.unmentioned_absent && !wrong.contains(attribute.name))
        gold[attribute.name] = json::array();
    }
    if (known) choice_.add(record.category, {std::move(record.document), std::move(gold)});
  }

  const Job job_, usual_job_;
  const Schema& schema_;
  RecordMapper own_, usual_;
  ExampleChoice choice_;
};

}  // namespace

Examples read_examples(const Job& job, const Schema& schema, int32_t positions) {
  if (job.task.examples.path.empty()) return {};
  Examples examples = ExampleReader(job, schema).read();
  examples.positions = positions;
  return examples;
}

std::string missing_examples(const Job& job, const Schema& schema, const Examples& examples) {
  if (examples.by_category.empty()) return {};
  constexpr size_t kNamed = 5;
  std::vector<std::string> without;
  for (const Category& category : schema.categories)
    if (examples.of(category.name).empty()) without.push_back(category.name);
  if (without.empty()) return {};
  const size_t count = without.size();
  without.resize(std::min(count, kNamed));
  return fmt::format("{} has no examples for {} of {} categories: {}{}; their prompts show none",
                     job.task.examples.path, count, schema.categories.size(), fmt::join(without, ", "),
                     count > kNamed ? ", …" : "");
}

}  // namespace sheaf
