#include "io/jobs/trusted_run.h"

#include <algorithm>
#include <filesystem>
#include <optional>

#include "core/base/error.h"
#include "core/task/find_text.h"
#include "core/text/format.h"
#include "core/text/spelling.h"
#include "io/files/job_keys.h"
#include "io/jobs/finished_run.h"
#include "io/run_folder/read_rows.h"

namespace sheaf {
namespace {

using nlohmann::ordered_json;

std::string model_name(const std::string& path) {
  return std::filesystem::path(path).stem().string();
}

/// Refuses a run that took other texts from the corpus than the job does.
void check_same_input(const Job& job, const Manifest& manifest) {
  const ordered_json now = job_settings(job, Decides::rows).at("input");
  const ordered_json then = manifest.fingerprint.at("job").at("input");
  const auto text = [](const ordered_json& value) {
    return value.is_null() || value == "" ? "none" : shorten_text(value.dump(), 60);
  };
  for (const char* key : {"id", "document", "category", "html", "locale", "split"}) {
    const ordered_json own = now.value(key, ordered_json()), other = then.value(key, ordered_json());
    if (own != other)
      refuse(
          "task.trust.run: {} was run with another input.{} ({}, and this job has {}); run it again with "
          "this one",
          job.task.trust.run, key, text(other), text(own));
  }
}

/// The lowest confidence such that the mean of those from it on is at least `precision`; above 1 where none
/// is.
double threshold_for(std::vector<double> confidences, double precision) {
  std::ranges::sort(confidences, std::greater());
  double sum = 0, threshold = 2;
  for (size_t i = 0; i < confidences.size(); ++i) {
    sum += confidences[i];
    const bool last_of_equals = i + 1 == confidences.size() || confidences[i + 1] != confidences[i];
    if (last_of_equals && sum >= precision * static_cast<double>(i + 1)) threshold = confidences[i];
  }
  return threshold;
}

class TrustingTask : public Task {
 public:
  TrustingTask(std::unique_ptr<Task> task, const TrustedRun& trusted)
      : task_(std::move(task)), trusted_(trusted) {}

  std::string bin_name(const Record& record) const override { return task_->bin_name(record); }
  RecordParts parts(const Record& record) override {
    RecordParts parts = task_->parts(record);
    parts.known = trusted_.taken(record);
    return parts;
  }
  std::vector<std::string> notices() const override { return task_->notices(); }
  std::vector<WantedAnswer> wanted(const Record& record, const nlohmann::json& gold) const override {
    return task_->wanted(record, gold);
  }
  Row row(const Record& record, const std::vector<Answer>& answers) const override {
    return task_->row(record, answers);
  }

 private:
  std::unique_ptr<Task> task_;
  const TrustedRun& trusted_;
};

}  // namespace

TrustedRun::TrustedRun(const Job& job, const Schema& schema) : schema_(schema), run_(job.task.trust.run) {
  const Job::Task::Trust& trust = job.task.trust;
  const FinishedRun run({run_, job.input.path, job.task.schema, "task.trust.run"});
  const ordered_json& print = run.manifest().fingerprint;
  check_same_input(job, run.manifest());
  if (!print.at("job").value("output", ordered_json::object()).value("confidence", false))
    refuse("task.trust.run: the rows of {} have no confidence; run it again with output.confidence: true",
           run_);
  if (trust.precision > 0 && !print.contains("calibration"))
    refuse(
        "task.trust.precision needs a calibrated confidence, which {} does not have; run it again with "
        "output.calibration, or set task.trust.at_least to what `sheaf calibrate --precision` prints",
        run_);
  own_model_ = model_name(job.model.path);
  model_ = model_name(read_report_file(run_ + "/report.json").value("model", ""));
  // One model with two adapters, say: the folder of the run tells them apart, wherever the job is run from.
  if (model_.empty() || model_ == own_model_)
    model_ = std::filesystem::weakly_canonical(run_).filename().string();

  std::vector<double> values, nulls;
  const auto read = [&](const std::function<void(Row &&)>& take) {
    read_rows(run_, run.manifest(), run.schema(), take);
  };
  if (trust.precision > 0) {
    read([&](Row&& row) {
      for (const AttributeValue& each : std::get<ExtractedValues>(row.content).values)
        if (each.answer.confidence)
          (is_found(each.answer.value) ? values : nulls).push_back(*each.answer.confidence);
    });
    values_at_least_ = threshold_for(std::move(values), trust.precision);
    nulls_at_least_ = threshold_for(std::move(nulls), trust.precision);
  } else {
    values_at_least_ = trust.at_least;
    nulls_at_least_ = trust.nulls_at_least > 0 ? trust.nulls_at_least : trust.at_least;
  }
  std::vector<std::string> repeated;
  read([&](Row&& row) {
    Values sure;
    for (AttributeValue& each : std::get<ExtractedValues>(row.content).values) {
      ++answers_;
      RowAnswer& answer = each.answer;
      const double least = is_found(answer.value) ? values_at_least_ : nulls_at_least_;
      // A note says that something was wrong with the value.
      if (!answer.note.empty() || !answer.confidence || !(*answer.confidence >= least)) continue;
      sure.emplace(std::move(each.name),
                   RowAnswer{.value = std::move(answer.value), .confidence = answer.confidence});
    }
    taken_ += std::ssize(sure);
    std::string id = row.id.dump();
    if (!by_id_.try_emplace(id, std::move(sure)).second) repeated.push_back(std::move(id));
  });
  // Which of them a record is cannot be told.
  repeated_ = std::ssize(repeated);
  for (const std::string& id : repeated) by_id_[id].clear();
}

std::string TrustedRun::notice() const {
  const auto least = [](double number) {
    return number > 1 ? std::string("none is sure enough")
                      : fmt::format("from a confidence of {:.4g}", number);
  };
  std::string text =
      fmt::format("task.trust: {} of the {} of {} are sure enough to be taken (values {}, nulls {})", taken_,
                  counted(answers_, "answer"), run_, least(values_at_least_), least(nulls_at_least_));
  if (repeated_ > 0)
    text += fmt::format("; {} with an id that an earlier row has are left out", counted(repeated_, "row"));
  return text;
}

const TrustedRun::Values* TrustedRun::find(const Record& record) const {
  const auto found = by_id_.find(record.id.dump());
  return found == by_id_.end() || found->second.empty() ? nullptr : &found->second;
}

std::vector<bool> TrustedRun::taken(const Record& record) const {
  const Values* const values = find(record);
  if (!values) return {};
  std::vector<bool> taken;
  for (const Attribute& attribute : schema_.of(record.category).attributes)
    taken.push_back(values->contains(attribute.name));
  return taken;
}

void TrustedRun::fill(const Record& record, bool confidence, bool sources, Row& row) const {
  const Values* const values = find(record);
  for (auto& [name, answer] : std::get<ExtractedValues>(row.content).values) {
    const auto known = values ? values->find(name) : Values::const_iterator();
    const bool taken = values && known != values->end();
    if (taken) {
      const bool spans = answer.spans.has_value();
      answer = known->second;
      if (spans) answer.spans = spans_of(record, answer.value);
      if (!confidence) answer.confidence.reset();
    }
    if (sources) answer.source = taken ? model_ : own_model_;
  }
}

std::unique_ptr<Task> make_trusting_task(std::unique_ptr<Task> task, const TrustedRun& trusted) {
  return std::make_unique<TrustingTask>(std::move(task), trusted);
}

}  // namespace sheaf
