#include "core/task/samples.h"

#include <algorithm>

#include "core/base/error.h"
#include "core/task/record_row.h"

namespace sheaf {
namespace {

constexpr size_t kMostRepeated = 1000;

/// The job of one sample. A vote's confidence is not that of its samples.
Job sample_job(Job job) {
  if (votes(job)) job.output.confidence = false;
  return job;
}

template <class Value>
std::vector<Value> each_repeated(const std::vector<Value>& values, int32_t times) {
  std::vector<Value> out;
  out.reserve(values.size() * static_cast<size_t>(times));
  for (const Value& value : values) out.insert(out.end(), static_cast<size_t>(times), value);
  return out;
}

}  // namespace

bool votes(const Job& job) {
  return job.method.samples > 1 && job.task.kind != TaskKind::chat && job.output.samples == SampleRows::vote;
}

int32_t samples_of(const Job& job, const Record& record) {
  return record.samples > 0 ? record.samples : job.method.samples;
}

RowContent vote(std::vector<RowContent> samples) {
  std::vector<std::vector<RowAnswer*>> said;
  for (RowContent& sample : samples) said.push_back(answers_of(sample));
  RowContent content = samples[0];
  // What is said of a whole text is true of one sample only.
  if (auto* values = std::get_if<ExtractedValues>(&content)) {
    values->logprob.reset();
    values->raw.reset();
  }
  const std::vector<RowAnswer*> chosen = answers_of(content);
  for (size_t i = 0; i < chosen.size(); ++i) {
    size_t best = 0;
    int64_t most = 0;
    for (size_t s = 0; s < said.size(); ++s) {
      const auto same = [&](const std::vector<RowAnswer*>& other) {
        return other[i]->value == said[s][i]->value;
      };
      if (const auto count = std::ranges::count_if(said, same); count > most) {
        most = count;
        best = s;
      }
    }
    *chosen[i] = *said[best][i];
    chosen[i]->null_margin.reset();
    chosen[i]->confidence = static_cast<double>(most) / static_cast<double>(said.size());
  }
  return content;
}

SampledTask::SampledTask(const Job& job, const std::function<std::unique_ptr<Task>(const Job&)>& make)
    : job_(sample_job(job)), votes_(votes(job)), task_(make(job_)) {}

std::shared_ptr<const BinParts> SampledTask::repeated(const std::shared_ptr<const BinParts>& bin,
                                                      int32_t samples) {
  if (bins_.size() >= kMostRepeated) bins_.clear();
  Bin& known = bins_[{bin.get(), samples}];
  if (!known.repeated) {
    auto made = std::make_shared<BinParts>(*bin);
    made->questions = each_repeated(bin->questions, samples);
    known = {bin, std::move(made)};
  }
  return known.repeated;
}

RecordParts SampledTask::parts(const Record& record) {
  RecordParts parts = task_->parts(record);
  const int32_t samples = samples_of(job_, record);
  if (samples == 1) return parts;
  const float temperature = parts.decoding ? parts.decoding->temperature : job_.method.temperature;
  if (!(temperature > 0))
    refuse("{} answers are asked for, but at temperature 0 all of them are the same; set a temperature",
           samples);
  parts.samples = samples;
  if (parts.own_questions.empty())
    parts.bin = repeated(parts.bin, samples);
  else
    parts.own_questions = each_repeated(parts.own_questions, samples);
  for (DocumentParts& document : parts.documents)
    document.relevance = each_repeated(document.relevance, samples);
  return parts;
}

std::vector<WantedAnswer> SampledTask::wanted(const Record& record, const nlohmann::json& gold) const {
  if (samples_of(job_, record) > 1)
    refuse("training data has one answer to a question; set method.samples: 1");
  return task_->wanted(record, gold);
}

Row SampledTask::row(const Record& record, const std::vector<Answer>& answers) const {
  const auto samples = static_cast<size_t>(samples_of(job_, record));
  if (samples == 1 || answers.empty()) return task_->row(record, answers);
  Row row;
  std::vector<RowContent> contents;
  for (size_t s = 0; s < samples; ++s) {
    std::vector<Answer> own;
    for (size_t i = s; i < answers.size(); i += samples) own.push_back(answers[i]);
    Row each = task_->row(record, own);
    contents.push_back(std::move(each.content));
    row.id = std::move(each.id);
  }
  row.content = votes_ ? vote(std::move(contents)) : contents[0];
  if (!votes_) row.samples = std::move(contents);
  return row;
}

}  // namespace sheaf
