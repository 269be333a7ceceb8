#include "io/jobs/train_data_job.h"

#include <algorithm>
#include <filesystem>
#include <set>
#include <unordered_map>
#include <unordered_set>

#include "core/methods/method.h"
#include "core/plan/training_prompt.h"
#include "core/task/gold.h"
#include "core/task/gold_kinds.h"
#include "core/text/spelling.h"
#include "io/base/mapped_file.h"
#include "io/base/named_output.h"
#include "io/base/table_cells.h"
#include "io/base/table_writer.h"
#include "io/corpus/corpus.h"
#include "io/datasets/gold.h"
#include "io/files/predictions.h"
#include "io/run_folder/output_place.h"

namespace sheaf {
namespace {

constexpr size_t kToldRejects = 20;

using nlohmann::json;
using nlohmann::ordered_json;
using Type = TableColumn::Type;

/// Right answers by the id of a record (extract: attribute → values) or of a question (its references).
using GoldById = std::unordered_map<std::string, json>;

struct Gold {
  GoldById right;
  std::string first;    ///< id
  GoldById wrong = {};  ///< attributes of which only a wrong value is known
  std::unordered_map<std::string, std::string> places = {};  ///< in a file, by id
};

[[noreturn]] void refuse_kind(const std::string& path, bool documents) {
  refuse("{}: the right answers are {}, but the job needs {}", path,
         documents ? "answers to questions" : "attribute values",
         documents ? "attribute values" : "answers to questions");
}

Gold gold_of_rows(const std::string& path, bool documents) {
  Predictions predictions = read_predictions(path);
  if (predictions.documents != documents) refuse_kind(path, documents);
  if (!predictions.repeated.empty())
    refuse(
        "{}: several rows have the id {}, so that their answers cannot be told apart; run the job again with "
        "input.duplicate_ids: refuse",
        path, shown(predictions.repeated.begin()->first));
  GoldById gold;
  for (auto& [id, row] : predictions.by_id)
    gold[id] = predictions.documents ? std::move(row) : row.value("answer", json());
  // What could not be read says nothing about the document.
  for (const auto& [id, names] : predictions.noted)
    for (const std::string& name : names)
      if (gold[id].contains(name) && gold[id][name].is_null()) gold[id].erase(name);
  return {std::move(gold), predictions.ids.front()};
}

void add_gold_of_file(const std::string& format, const std::string& path, const GoldOptions& options,
                      bool documents, Gold& gold) {
  for (GoldAnswer& answer : read_gold(format, path, options)) {
    const bool document = answer.extra.is_object() && answer.extra.contains("gold");
    if (document != documents) refuse_kind(path, documents);
    if (gold.right.contains(id_text(answer.id)))
      refuse("{}: there are two right answers with the id {}; ids must differ", answer.place,
             shown(id_text(answer.id)));
    if (gold.first.empty()) gold.first = id_text(answer.id);
    gold.places[id_text(answer.id)] = answer.place;
    if (document && answer.extra.contains("wrong"))
      gold.wrong[id_text(answer.id)] = std::move(answer.extra["wrong"]);
    gold.right[id_text(answer.id)] = document            ? std::move(answer.extra["gold"])
                                     : answer.answerable ? json(answer.references)
                                                         : json();
  }
}

/// The right answers that stand in the job's own corpus.
Gold gold_of_corpus(const Job& job) {
  Gold gold;
  const bool documents = job.task.kind == TaskKind::extract;
  if (find_dataset_format(job.input.format) != nullptr) {
    add_gold_of_file(job.input.format, job.input.path, {}, documents, gold);
    return gold;
  }
  if (documents && job.input.id.empty())
    refuse("{}: set input.id to the column that names each record, or name the right answers with --gold",
           job.file);
  for (const std::string& file : find_corpus_files(job.input).files)
    add_gold_of_file("sheaf", file,
                     {.id = documents ? job.input.id : "",
                      .may_be_empty = true,
                      .hint = "; or name the right answers with --gold"},
                     documents, gold);
  return gold;
}

Gold find_gold(const Job& job, const TrainDataSettings& settings) {
  const bool documents = job.task.kind == TaskKind::extract;
  if (!settings.rows.empty()) return gold_of_rows(settings.rows, documents);
  if (settings.gold.empty()) return gold_of_corpus(job);
  Gold gold;
  add_gold_of_file(settings.gold_format, settings.gold, {}, documents, gold);
  return gold;
}

class TrainDataFile {
 public:
  TrainDataFile(const std::string& path, const std::string& about) : path_(path), part_(path + ".part") {
    if (!path.ends_with(".parquet")) refuse("{}: the name of the training data must end in .parquet", path);
    if (const auto folder = std::filesystem::path(path).parent_path(); !folder.empty())
      real_files().make_folder(folder.string());
    real_files().remove(part_);
    file_ = real_files().open(part_);
    table_.emplace(TableFormat::parquet,
                   std::vector<TableColumn>{{"tokens", Type::integers},
                                            {"positions", Type::integers},
                                            {"targets", Type::integers},
                                            {"segment_starts", Type::integers},
                                            {"sees", Type::integer_lists},
                                            {"abreast", Type::integer_lists},
                                            {"records", Type::texts}},
                   *file_, about);
  }

  ~TrainDataFile() {
    if (!file_) return;
    std::error_code ignored;
    std::filesystem::remove(part_, ignored);
  }

  void add(const TrainingPrompt& prompt, const std::vector<Record>& records) {
    append_integers(table_->cell(0), prompt.tokens);
    append_integers(table_->cell(1), prompt.positions);
    append_integers(table_->cell(2), prompt.targets);
    append_integers(table_->cell(3), prompt.segment_starts);
    append_lists(table_->cell(4), prompt.sees);
    append_lists(table_->cell(5), prompt.abreast);
    arrow::ArrayBuilder& ids = append_list(table_->cell(6));
    for (const int32_t record : prompt.records)
      append_text(ids, id_text(records[static_cast<size_t>(record)].id));
    table_->end_row(static_cast<int64_t>(prompt.tokens.size()) * 12);
  }

  void finish() {
    table_->close();
    file_->sync();
    real_files().rename(part_, path_);
    file_.reset();
  }

 private:
  static void append_lists(arrow::ArrayBuilder& cell, const std::vector<std::vector<int32_t>>& lists) {
    arrow::ArrayBuilder& entries = append_list(cell);
    for (const std::vector<int32_t>& list : lists) append_integers(entries, list);
  }

  std::string path_, part_;
  std::unique_ptr<OutputFile> file_;
  std::optional<TableWriter> table_;
};

class TrainDataJob {
 public:
  /// `schema`: with its spans, which the opened job's has no longer.
  TrainDataJob(OpenedJob& opened, const TrainDataSettings& settings, const Schema& schema)
      : opened_(opened),
        settings_(settings),
        schema_(schema),
        job_(one_prompt_per_record(opened.job())),
        task_(opened.task(job_)),
        planner_(make_builder(job_.method), {opened.model().config.context, job_.method.prompt_tokens,
                                             [](const Stack&) { return true; }}),
        gold_(find_gold(job_, settings)),
        file_(settings.to, about()) {
    if (job_.method.document_temperature != 1 || job_.method.document_scale != 1)
      refuse(
          "{}: training data has no place for method.document_temperature and method.document_scale; leave "
          "them "
          "out, or set both to 1",
          job_.file);
  }

  TrainDataEnd run() {
    const auto corpus = opened_.corpus();
    std::vector<Record> window;
    while (auto next = corpus->next()) {
      if (*opened_.job().stop) return end_;
      if (const auto* reject = std::get_if<Reject>(&*next)) {
        reject_at(reject->place, reject->reason, reject->records);
        continue;
      }
      window.push_back(std::move(std::get<Record>(*next)));
      if (std::ssize(window) == job_.engine.window) write_window(window);
    }
    write_window(window);
    end_.notice = unknown_.notice(gold_path());
    if (end_.answers == 0) refuse("{}: no answer to learn was found: {}", gold_path(), why_nothing());
    file_.finish();
    end_.finished = true;
    return end_;
  }

 private:
  /// Greedy options: the walk through a trie is one answer, which is what is learned.
  static Job one_prompt_per_record(Job job) {
    job.method.options = OptionChoice::greedy;
    return job;
  }

  std::string about() const {
    const Job::Method& method = job_.method;
    return ordered_json{{"version", 1},
                        {"model", job_.model.path},
                        {"chat", opened_.chat().name},
                        {"method", method.name},
                        {"values", word_of(method.values)},
                        {"stacking", word_of(method.stacking)},
                        {"keys", word_of(method.keys)},
                        {"value_end", word_of(method.value_end)},
                        {"max_value_tokens", method.max_value_tokens}}
        .dump(-1, ' ', false, ordered_json::error_handler_t::replace);
  }

  const std::string& gold_path() const {
    return !settings_.rows.empty()   ? settings_.rows
           : !settings_.gold.empty() ? settings_.gold
                                     : job_.input.path;
  }

  std::string why_nothing() const {
    if (read_ == 0 && end_.rejects.empty()) return fmt::format("{} has no records", job_.input.path);
    if (gold_.right.empty()) return "it has no right answers; name a file that has some with --gold";
    if (read_ > 0 && end_.without_gold == read_)
      return fmt::format("its ids (such as {}) do not match those of {} (such as {})", shown(gold_.first),
                         job_.input.path, shown(first_asked_));
    if (!end_.rejects.empty()) return end_.rejects.front();
    const std::string known =
        fmt::format("it knows {} of {}", read_ - end_.without_gold, counted(read_, "record"));
    if (!end_.notice.empty()) return fmt::format("{}, but no value for them; {}", known, end_.notice);
    if (end_.unreadable == 0) return known + ", but gives them no value";
    return known + ", but gives them no value that the attribute's type holds";
  }

  void reject_at(const Place& place, const std::string& reason, int64_t records = 1) {
    if (end_.rejects.size() < kToldRejects)
      end_.rejects.push_back(fmt::format("{}:{}: {}", place.file, place.row, reason));
    end_.rejected += records;
  }

  /// What the right answers call the record, or its first question.
  static std::string asked_id(const Record& record) {
    const bool by_question = !record.questions.empty() && !record.questions.front().id.is_null();
    return id_text(by_question ? record.questions.front().id : record.id);
  }

  /// Right answers of an id belong to the first record that has it: which one is meant cannot be told.
  bool is_repeated(const Record& record) {
    const bool known = gold_.right.contains(asked_id(record));
    if (!known || used_.insert(asked_id(record)).second) return false;
    if (end_.repeated++ == 0) end_.first_repeated = asked_id(record);
    return true;
  }

  json gold_of(const Record& record) {
    if (is_repeated(record)) return nullptr;
    if (job_.task.kind == TaskKind::extract) {
      const auto found = gold_.right.find(id_text(record.id));
      if (found == gold_.right.end()) return nullptr;
      json gold = found->second;
      const Category& category = *schema_.find(record.category);
      unknown_.add(category, gold);
      if (const std::string trouble = gold_kind_trouble(category.attributes, gold); !trouble.empty()) {
        const auto place = gold_.places.find(id_text(record.id));
        refuse("{}: \"gold\": {}", place == gold_.places.end() ? gold_path() : place->second, trouble);
      }
      const auto wrong = gold_.wrong.find(id_text(record.id));
      if (settings_.unmentioned_absent)
        for (const Attribute& attribute : category.attributes)
          if (!gold.contains(attribute.name) &&
              (wrong == gold_.wrong.end() || !wrong->second.contains(attribute.name)))
            gold[attribute.name] = nullptr;
      end_.unreadable += bind_gold(category, record, gold);
      for (const Attribute& attribute : category.attributes)
        end_.unreadable += gold.contains(attribute.name) && !write_value(attribute, gold[attribute.name]);
      return gold;
    }
    json gold = json::object();
    for (const Question& question : record.questions) {
      const std::string id = id_text(question.id.is_null() ? record.id : question.id);
      if (const auto found = gold_.right.find(id); found != gold_.right.end()) gold[id] = found->second;
    }
    return gold.empty() ? json() : gold;
  }

  void write_window(std::vector<Record>& records) {
    std::vector<std::vector<WantedAnswer>> answers;
    for (const Record& record : records) {
      if (read_++ == 0) first_asked_ = asked_id(record);
      const int64_t before = end_.repeated;
      const json gold = gold_of(record);
      end_.without_gold += gold.is_null() && end_.repeated == before;
      answers.push_back(gold.is_null() ? std::vector<WantedAnswer>{} : task_->wanted(record, gold));
    }
    const Plan plan = planner_.plan(make_ready(*task_, records));
    for (const auto& [record, reason] : plan.refused)
      reject_at(records[static_cast<size_t>(record)].place, reason);
    std::set<int32_t> learned;
    const auto wanted = [&](const Slot& slot) -> const WantedAnswer* {
      const auto& of_record = answers[static_cast<size_t>(slot.record)];
      return of_record.empty() ? nullptr : &of_record[static_cast<size_t>(slot.question)];
    };
    for (const Stack& stack : plan.stacks)
      for (const TrainingPrompt& prompt : make_training_prompts(stack, opened_.stop_rules(), wanted)) {
        ++end_.prompts;
        learned.insert(prompt.records.begin(), prompt.records.end());
        end_.tokens += std::ssize(prompt.tokens);
        end_.answers += prompt.answers;
        end_.answer_tokens +=
            std::ranges::count_if(prompt.targets, [](int32_t target) { return target >= 0; });
        file_.add(prompt, records);
      }
    end_.records += std::ssize(learned);
    records.clear();
  }

  OpenedJob& opened_;
  const TrainDataSettings& settings_;
  const Schema& schema_;
  const Job job_;
  std::unique_ptr<Task> task_;
  Planner planner_;
  Gold gold_;
  TrainDataFile file_;
  TrainDataEnd end_;
  UnknownNames unknown_;
  std::unordered_set<std::string> used_;  ///< ids whose right answers were given to a record
  int64_t read_ = 0;                      ///< records
  std::string first_asked_;               ///< id
};

}  // namespace

TrainDataEnd write_train_data(OpenedJob& opened, const TrainDataSettings& settings) {
  const Job& job = opened.job();
  if (job.input.path == "-")
    refuse("{}: training data cannot be made from standard input; name a file", job.file);
  std::vector<std::string> read = paths_read(job);
  read.insert(read.end(), {settings.gold, settings.rows});
  for (const std::string& file : find_corpus_files(job.input).files) read.push_back(file);
  check_not_read(settings.to, read);
  const Schema schema = opened.schema();
  opened.free_answers();
  return TrainDataJob(opened, settings, schema).run();
}

}  // namespace sheaf
