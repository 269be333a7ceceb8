#include "io/corpus/example_file.h"

#include <algorithm>
#include <fmt/ranges.h>
#include <map>

#include "core/task/gold.h"
#include "core/task/gold_kinds.h"
#include "core/text/spelling.h"
#include "io/corpus/corpus.h"
#include "io/corpus/record_mapper.h"
#include "io/datasets/gold.h"

namespace sheaf {
namespace {

using nlohmann::json;

constexpr std::string_view kExampleForms =
    "task.examples must name records with a \"gold\" column (.jsonl, .csv or .parquet), or oa-mine or "
    "ae-110k as "
    "downloaded";

constexpr size_t kNamed = 5, kLongestName = 60;

std::string some_names(const std::vector<Category>& categories) {
  std::vector<std::string> names;
  for (size_t i = 0; i < std::min(categories.size(), kNamed); ++i) names.push_back(categories[i].name);
  return fmt::format("{}{}", fmt::join(names, ", "), categories.size() > kNamed ? ", …" : "");
}

/// The job as one that reads the columns of `sheaf convert` and `sheaf review`.
Job with_usual_columns(Job job) {
  job.input.document = {"document"};
  if (!job.input.category.empty()) job.input.category = "category";
  return job;
}

/// Examples are not rows: they need no id and keep nothing.
Job without_id(Job job) {
  job.input.id.clear();
  job.input.keep.clear();
  return job;
}

class ExampleReader {
 public:
  ExampleReader(const Job& job, const Schema& schema)
      : corpus_job_(job),
        job_(without_id(job)),
        usual_job_(with_usual_columns(job_)),
        schema_(schema),
        own_(job_, &schema),
        usual_(usual_job_, &schema),
        choice_(job.task.examples.per_category, job.task.examples.seed) {}

  Examples read() {
    const std::string& path = job_.task.examples.path;
    const auto rows = open_gold("auto", path, kExampleForms);
    bool empty = true;
    while (auto row = rows->next()) {
      empty = false;
      try {
        if (!row->error.empty()) throw BadText(row->error);
        add(*row);
      } catch (const BadText& bad) {
        refuse("{}: task.examples: {}", place_text(*row), bad.reason);
      }
    }
    join_corpus();
    Examples examples{choice_.take()};
    if (!examples.by_category.empty() || job_.task.examples.per_category == 0) return examples;
    if (empty) refuse("{}: task.examples: the file is empty; name records with a \"gold\" column", path);
    if (!unmatched_.empty() && known_ == 0)
      refuse("{}: task.examples: no record of {} has the id of an example, such as {}", path, job_.input.path,
             shorten_text(unmatched_, kLongestName));
    if (known_ == 0)
      refuse("{}: task.examples: no record has a category of {}: found \"{}\", but the schema has {}", path,
             job_.task.schema, unknown_category_, some_names(schema_.categories));
    const std::string why = unknown_.notice(path).empty() ? unreadable() : unknown_.notice(path);
    refuse("{}: task.examples: no record gives an attribute of its category in {} a value{}{}", path,
           job_.task.schema, why.empty() ? "" : "; ", why);
  }

  std::string unknown_names() const { return unknown_.notice(job_.task.examples.path); }

  std::string unreadable() const {
    return unreadable_.notice(job_.task.examples.path, "left out of the examples");
  }

  /// What to tell the user of examples whose id the corpus lacks; empty where there are none.
  std::string unmatched() const {
    if (unmatched_.empty()) return {};
    return fmt::format("{}: {} left out, because no record of {} has the id: {}{}", job_.task.examples.path,
                       counted(unmatched_count_, "example"), job_.input.path,
                       shorten_text(unmatched_, kLongestName), unmatched_count_ > 1 ? ", …" : "");
  }

 private:
  /// Whether the row has the columns that the job names.
  static bool has_columns(const ordered_json& cells, const RecordMapper& mapper) {
    return std::ranges::all_of(mapper.columns(),
                               [&](const MappedColumn& column) { return cells.contains(column.name); });
  }

  static std::vector<std::string> missing_columns(const ordered_json& cells, const RecordMapper& mapper) {
    std::vector<std::string> missing;
    for (const MappedColumn& column : mapper.columns())
      if (!cells.contains(column.name)) missing.push_back(fmt::format("\"{}\"", column.name));
    return missing;
  }

  static std::string id_text(const json& id) { return id.is_string() ? id.get<std::string>() : id.dump(); }

  /// The id of a row that has gold values and nothing to read them from; empty: it has none.
  std::string id_alone(const ordered_json& cells) const {
    if (!cells.contains("gold") || corpus_job_.input.id.empty()) return {};
    const auto& documents = job_.input.document;
    if (cells.contains("document") ||
        std::ranges::any_of(documents, [&](const std::string& name) { return cells.contains(name); }))
      return {};
    for (const std::string& name : {corpus_job_.input.id, std::string("id")})
      if (const auto id = cells.find(name); id != cells.end() && (id->is_string() || id->is_number()))
        return id_text(*id);
    return {};
  }

  /// Adds the rows of which only the id is known, with the documents of the corpus.
  void join_corpus() {
    if (waiting_.empty()) return;
    if (job_.input.path == "-")
      refuse(
          "{}: task.examples: its records have no document, and standard input cannot be searched for their "
          "ids; add the columns of the document",
          job_.task.examples.path);
    Job job = corpus_job_;
    job.input.keep.clear();
    job.input.limit = 0;
    const auto corpus = open_corpus(job, &schema_);
    while (!waiting_.empty()) {
      const auto row = corpus->next();
      if (!row) break;
      const auto* record = std::get_if<Record>(&*row);
      const auto found = record ? waiting_.find(id_text(record->id)) : waiting_.end();
      if (found == waiting_.end()) continue;
      ++known_;
      try {
        use(*record, found->second.cells);
      } catch (const BadText& bad) {
        refuse("{}: task.examples: {}", place_text(found->second), bad.reason);
      }
      waiting_.erase(found);
    }
    if (waiting_.empty()) return;
    unmatched_ = waiting_.begin()->first;
    unmatched_count_ = std::ssize(waiting_);
  }

  void add(const DatasetRow& row) {
    if (!row.cells.is_object()) reject("this is not a JSON object");
    const bool own = has_columns(row.cells, own_), usual = !own && has_columns(row.cells, usual_);
    if (!own && !usual) {
      if (const std::string id = id_alone(row.cells); !id.empty()) {
        waiting_.emplace(id, row);
        return;
      }
      const std::vector<std::string> missing = missing_columns(row.cells, own_),
                                     others = missing_columns(row.cells, usual_);
      // Null cells may be left out of a line of JSON; without any text it is another file.
      if (missing.size() == own_.columns().size() || others.size() < missing.size())
        reject("column {} is missing; an example needs the columns of the job, or \"document\"{}, or {}",
               fmt::join(others.size() < missing.size() ? others : missing, ", "),
               job_.input.category.empty() ? "" : " and \"category\"",
               corpus_job_.input.id.empty()
                   ? "\"id\" where the job has input.id"
                   : fmt::format("\"{}\" to find its document in the corpus", corpus_job_.input.id));
    }
    const std::string& column = (usual ? usual_job_ : job_).input.category;
    if (const auto category = row.cells.find(column); !column.empty() && category != row.cells.end() &&
                                                      category->is_string() &&
                                                      !schema_.find(category->get<std::string>())) {
      if (unknown_category_.empty())
        unknown_category_ = shorten_text(category->get_ref<const std::string&>(), kLongestName);
      return;
    }
    ++known_;
    auto mapped = (usual ? usual_ : own_).map(row.place, row.cells, 0);
    if (const auto* reject = std::get_if<Reject>(&mapped)) throw BadText(reject->reason);
    use(std::get<Record>(mapped), row.cells);
  }

  /// Adds a record with the gold values of `cells`.
  void use(const Record& record, const ordered_json& cells) {
    json gold = gold_values(cells);
    // A person found these wrong, null among them, and did not say what is right.
    const json wrong = wrong_values(cells);
    const Category& category = *schema_.find(record.category);
    unknown_.add(category, gold);
    const json given = gold;
    bind_gold(category, record, gold);
    bool known = false;
    for (const Attribute& attribute : category.attributes) {
      const auto value = gold.find(attribute.name);
      const bool readable = value != gold.end() &&
                            gold_kind_trouble({attribute}, {{attribute.name, *value}}).empty() &&
                            write_value(attribute, *value);
      if (!readable && given.contains(attribute.name)) {
        unreadable_.add(attribute, given[attribute.name]);
        gold.erase(attribute.name);
      }
      known = known || readable;
      if (!given.contains(attribute.name) && job_.task.examples.unmentioned_absent &&
          !wrong.contains(attribute.name))
        gold[attribute.name] = json::array();
    }
    if (known) choice_.add(record.category, {record.document, std::move(gold)});
  }

  const Job corpus_job_, job_, usual_job_;
  const Schema& schema_;
  RecordMapper own_, usual_;
  ExampleChoice choice_;
  UnknownNames unknown_;
  UnreadableGold unreadable_;
  int64_t known_ = 0;                          ///< records whose category the schema has
  std::string unknown_category_;               ///< the first one
  std::map<std::string, DatasetRow> waiting_;  ///< by id: rows without a document
  std::string unmatched_;                      ///< an id that the corpus lacks
  int64_t unmatched_count_ = 0;
};

/// What to tell the user of categories without examples; empty where all have some.
std::string missing_examples(const std::string& path, const Schema& schema, const Examples& examples) {
  if (examples.by_category.empty()) return {};
  std::vector<Category> without;
  for (const Category& category : schema.categories)
    if (examples.of(category.name).empty()) without.push_back(category);
  if (without.empty()) return {};
  return fmt::format("{} has no examples for {} of {} categories: {}; their prompts show none", path,
                     without.size(), schema.categories.size(), some_names(without));
}

}  // namespace

Examples read_examples(const Job& job, const Schema& schema, int32_t positions,
                       std::vector<std::string>& notices) {
  if (job.task.examples.path.empty()) return {};
  if (job.task.kind == TaskKind::ask) {
    Examples examples = read_question_examples(job, notices);
    examples.positions = positions;
    return examples;
  }
  ExampleReader reader(job, schema);
  Examples examples = reader.read();
  examples.positions = positions;
  for (std::string& notice : std::vector{reader.unknown_names(), reader.unreadable(), reader.unmatched(),
                                         missing_examples(job.task.examples.path, schema, examples)})
    if (!notice.empty()) notices.push_back(std::move(notice));
  return examples;
}

}  // namespace sheaf
