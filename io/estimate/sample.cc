#include <algorithm>
#include <cmath>

#include "core/base/error.h"
#include "core/base/interrupted.h"
#include "core/methods/method.h"
#include "core/text/spelling.h"
#include "io/corpus/corpus.h"
#include "io/estimate/inputs.h"
#include "io/files/job_file.h"
#include "io/files/job_fingerprint.h"

namespace sheaf {
namespace {

constexpr int64_t kUsualSample = 512;
constexpr int64_t kRuns = 16;  // of records in a sample
// Longer records make a smaller sample: what it takes to plan and count them is bounded.
constexpr int64_t kSampleTokens = int64_t{1} << 20;
constexpr int64_t kSampleBytes = 4 * kSampleTokens;
constexpr double kMostMadeUp = 4e8;  // tokens that are made up: a few GB

int64_t bytes_of(const Record& record) {
  size_t bytes = record.document.size();
  for (const std::string& document : record.documents) bytes += document.size();
  for (const Question& question : record.questions) bytes += question.text.size();
  for (const std::string& turn : record.dialog.turns) bytes += turn.size();
  return static_cast<int64_t>(bytes);
}

/// Rows of a corpus, in runs from all over it as far as its length is known.
class CorpusSample {
 public:
  CorpusSample(Corpus& corpus, int64_t records, int64_t whole, int64_t bytes)
      : corpus_(corpus), bytes_(bytes) {
    const bool spread = whole > records;
    runs_.resize(static_cast<size_t>(spread ? std::min(kRuns, records) : 1));
    length_ = std::max<int64_t>(1, records / count());
    for (int64_t i = 0; i < count(); ++i) {
      corpus_.skip_to(spread ? i * whole / count() : 0);
      read_run(runs_[static_cast<size_t>(i)]);
    }
  }

  int64_t read() const { return read_; }
  int64_t rejects() const { return rejects_; }

  /// In an order in which any first half is as long as the second: what the second costs more is what the
  /// rest of the corpus is taken to cost. Runs are cut to one length, or short records would count for more.
  std::vector<Record> take() {
    std::vector<Record> records;
    constexpr size_t kOrder[kRuns] = {0, 8, 4, 12, 2, 10, 6, 14, 1, 9, 5, 13, 3, 11, 7, 15};
    for (const size_t i : kOrder) {
      if (i >= runs_.size()) continue;
      auto& run = runs_[i];
      run.resize(std::min(run.size(), static_cast<size_t>(length_)));
      std::ranges::move(run, std::back_inserter(records));
    }
    return records;
  }

 private:
  int64_t count() const { return static_cast<int64_t>(runs_.size()); }

  void read_run(std::vector<Record>& run) {
    const int64_t begin = corpus_.position();
    int64_t bytes = 0;
    while (corpus_.position() < begin + length_ && bytes < bytes_ / count()) {
      if (own_job_stopped()) fail_for_now("interrupted while reading the corpus");
      auto next = corpus_.next();
      if (!next) break;
      if (auto* record = std::get_if<Record>(&*next)) {
        bytes += bytes_of(*record);
        run.push_back(std::move(*record));
      } else {
        rejects_ += std::get<Reject>(*next).records;
      }
    }
    read_ += corpus_.position() - begin;
    if (bytes >= bytes_ / count()) length_ = std::max<int64_t>(1, corpus_.position() - begin);
  }

  Corpus& corpus_;
  int64_t bytes_;  ///< most that is kept
  int64_t length_ = 1;
  std::vector<std::vector<Record>> runs_;
  int64_t rejects_ = 0, read_ = 0;
};

/// Whether the method reads a record's documents one by one.
bool apart(const Job::Method& method, const RecordStatistics& statistics) {
  if (!find_method(method.name).wording.one_by_one) return false;
  if (!statistics.documents)
    refuse(
        "the method {} asks about the documents of a record one by one; set --documents-per-record to their "
        "number, and --document-tokens to the length of each",
        method.name);
  return true;
}

/// The first of two rounds, if the method has two: what is asked about a document is as long as a question.
std::vector<ReadyRecord> with_findings(std::vector<ReadyRecord> records, const Job::Method& method) {
  if (!find_method(method.name).wording.findings) return records;
  for (ReadyRecord& record : records) {
    FindingParts findings;
    findings.instruction = record.parts.bin->instruction;
    for (const QuestionParts& question : record.parts.questions()) {
      findings.asked.push_back({question.tokens, method.finding_tokens, Stop::line, nullptr});
      if (method.findings == Findings::summaries) break;
    }
    findings.most_tokens = [most = static_cast<size_t>(method.finding_tokens)](size_t count) {
      return count * most;
    };
    record.parts.findings = std::make_shared<FindingParts>(std::move(findings));
  }
  return records;
}

std::string document_text(const RecordStatistics& statistics) {
  return statistics.documents
             ? fmt::format("{:g} documents of {:g}", *statistics.documents, statistics.document)
             : fmt::format("{:g} of document", statistics.document);
}

std::string questions_text(const RecordStatistics& statistics) {
  const double count = statistics.questions.value_or(1);
  return fmt::format("{:g} question{} of {:g} tokens", count, count == 1 ? "" : "s",
                     statistics.question.value_or(kUsualQuestion));
}

}  // namespace

void EstimateInputs::read_corpus(const EstimateAsked& asked) {
  if (job_.input.path == "-") refuse("estimate: standard input cannot be sampled; name a file");
  try {
    find_corpus_files(job_.input, job_.file + ": input.path: ");
  } catch (const Error& error) {
    refuse("{}; if the data is elsewhere, describe its records with --document-tokens and --questions",
           error.what());
  }
  examples_ = job_.input.dataset.shots > 0;
  open_tokenizer(asked);
  if (!job_.task.trust.run.empty()) notes_.push_back(trusted_.emplace(job_, schema_).notice());
  if (!asked.reuse.runs.empty() && read_changed(asked)) return assume_answers(asked);
  const Schema* schema = job_.task.kind == TaskKind::extract ? &schema_ : nullptr;
  const auto corpus = open_corpus(job_, schema);
  std::optional<int64_t> known = asked.records;
  if (!known) known = corpus->records_expected();
  const int64_t whole = known ? *known : open_corpus(job_, schema)->count_records();
  const int64_t records = asked.sample.value_or(kUsualSample);
  CorpusSample sample(*corpus, records, asked.records ? records : whole,
                      asked.sample ? INT64_MAX : kSampleBytes);
  records_ = sample.take();
  if (records_.empty())
    refuse("{}: none of the {} sampled records can be used", job_.input.path, sample.read());
  sampled_.sample = static_cast<int64_t>(records_.size());
  const double usable = 1 - static_cast<double>(sample.rejects()) / static_cast<double>(sample.read());
  sampled_.whole = std::max<int64_t>(1, std::llround(static_cast<double>(whole) * usable));
  sampled_.rejected = whole - sampled_.whole;
  make_records_ = [this](const Job::Method&, Task* task) { return make_ready(*task, records_); };
  if (examples_) worded(job_.method);  // examples that cannot be had are refused here
  if (asked.records > sample.read())
    notes_.emplace_back(
        "with --records only the first records of the corpus are sampled; leave it out to sample the whole "
        "corpus");
  notes_.push_back(fmt::format(
      "a sample of {} record{}{}", sampled_.sample, sampled_.sample == 1 ? "" : "s",
      sampled_.sample < std::min(kFewRecords, sampled_.whole) ? " is too small to say much" : ""));
  assume_answers(asked);
}

/// Samples only records with answers that no earlier run has. False where there is no run to take any from.
bool EstimateInputs::read_changed(const EstimateAsked& asked) {
  if (dynamic_cast<const ByteTokenizer*>(tokenizer_.get()))
    refuse(
        "--reuse needs the tokenizer of the job's model; name the model's files (model.path), not a shape");
  Job job = job_;
  job.task.free_spans = false;
  if (examples_) add_examples(job);
  // Keys are those of a run: with spans that are copied, and of the kind of device that the answers are from.
  const Schema schema = job.task.schema.empty() ? Schema() : read_schema(job.task.schema);
  nlohmann::ordered_json settings = answer_settings(job, job.engine.device.kind == Device::Kind::cuda);
  const std::vector<std::string> own = {job.output.path};
  std::optional<EarlierRuns> earlier;
  for (const char* device : {settings.at("device") == "cuda" ? "cuda" : "cpu", "cuda"}) {
    settings["device"] = device;
    earlier.emplace(asked.reuse, job, own, settings);
    if (earlier->usable() || job.engine.device.kind != Device::Kind::automatic) break;
  }
  for (const std::vector<std::string>* each : {&earlier->notices(), &earlier->warnings()})
    notes_.insert(notes_.end(), each->begin(), each->end());
  if (!earlier->usable()) {
    notes_.emplace_back("no answer is known, so every answer is priced");
    return false;
  }
  const auto task = make_task(*tokenizer_, chat_, job, schema, &turns_);
  const auto corpus = open_corpus(job, job.task.kind == TaskKind::extract ? &schema : nullptr);
  const auto most = static_cast<size_t>(asked.sample.value_or(kUsualSample));
  // Every stride-th record that has something to decode; the stride doubles when there are too many.
  std::vector<std::pair<Record, std::vector<bool>>> kept;
  int64_t changed = 0, stride = 1;
  reused_ = count_known(*corpus, *task, job, settings, *earlier,
                        [&](int64_t, const Record& record, const std::vector<bool>& known) {
                          if (!known.empty() && std::ranges::find(known, false) == known.end()) return;
                          if (changed++ % stride != 0) return;
                          kept.emplace_back(record, known);
                          if (kept.size() < 2 * most) return;
                          for (size_t i = 0; 2 * i < kept.size(); ++i)
                            if (i > 0) kept[i] = std::move(kept[2 * i]);
                          kept.resize((kept.size() + 1) / 2);
                          stride *= 2;
                        });
  if (!reused_) refuse("estimate: interrupted while looking for answers of earlier runs");
  if (changed == 0) throw NothingToDecode{*reused_, earlier->names()};
  // Any first half is as long as the second, as in a sample of a whole corpus.
  for (const size_t first : {size_t{0}, size_t{1}})
    for (size_t i = first; i < kept.size(); i += 2) {
      records_.push_back(std::move(kept[i].first));
      known_.push_back(std::move(kept[i].second));
    }
  sampled_.sample = std::ssize(records_);
  sampled_.whole = changed;
  make_records_ = [this](const Job::Method&, Task* own_task) {
    std::vector<ReadyRecord> ready = make_ready(*own_task, records_);
    for (size_t i = 0; i < ready.size(); ++i)
      if (ready[i].refused.empty()) ready[i].parts.leave_out(known_[i]);
    return ready;
  };
  const bool on_gpu = settings.at("device") == "cuda";
  notes_.push_back(
      fmt::format("{} of {} ({:.1f} %) are known from {}; only {} with other answers {} priced. That run was "
                  "on a {}: one on "
                  "a {} takes none of its answers",
                  reused_->known, counted(reused_->answers, "answer"), 100 * reused_->share(),
                  earlier->names(), counted(changed, "record"), changed == 1 ? "is" : "are",
                  on_gpu ? "GPU" : "CPU", on_gpu ? "CPU" : "GPU"));
  return true;
}

void EstimateInputs::make_up(const EstimateAsked& asked) {
  RecordStatistics statistics = asked.statistics;
  if (const int32_t top = job_.input.top_documents; top > 0 && statistics.documents)
    statistics.documents = std::min<double>(*statistics.documents, top);
  const double answer = statistics.answer.value_or(
      job_.task.kind == TaskKind::chat ? job_.method.max_value_tokens : kUsualAnswer);
  statistics.answer = answer;
  sampled_.whole = asked.records.value_or(1000);
  const double record_tokens =
      statistics.documents.value_or(1) * statistics.document +
      statistics.questions.value_or(1) * (statistics.question.value_or(kUsualQuestion) + answer);
  const auto most = static_cast<int64_t>(static_cast<double>(kSampleTokens) / record_tokens);
  sampled_.sample =
      std::min(sampled_.whole, asked.sample.value_or(std::clamp<int64_t>(most, kRuns, kUsualSample)));
  if (const double tokens = record_tokens * static_cast<double>(sampled_.sample); tokens > kMostMadeUp)
    refuse(
        "estimate: {} records of {:.0f} tokens are too many to make up; use shorter lengths or a smaller "
        "--sample",
        sampled_.sample, record_tokens);
  if (job_.task.kind == TaskKind::none)
    make_up_alone(statistics);
  else
    make_up_for_job(statistics, asked);
  if (!asked.records) notes_.emplace_back("the estimate is for 1,000 records; set --records to their number");
}

void EstimateInputs::make_up_alone(const RecordStatistics& statistics) {
  auto bin = std::make_shared<BinParts>();
  bin->instruction = make_up_tokens(statistics.instruction.value_or(0));
  make_records_ = [=, this](const Job::Method& method, Task*) {
    return with_findings(
        make_up_records(statistics, sampled_.sample, {{"", bin}}, INT32_MAX, apart(method, statistics)),
        method);
  };
  notes_.push_back(fmt::format("made-up records: {} tokens of instruction, {}, {}, answers of {:g}",
                               bin->instruction.size(), document_text(statistics), questions_text(statistics),
                               *statistics.answer));
}

void EstimateInputs::make_up_for_job(RecordStatistics statistics, const EstimateAsked& asked) {
  const bool extract = job_.task.kind == TaskKind::extract;
  if (extract && (statistics.questions || statistics.question))
    refuse("estimate: {} defines what to ask about a document; leave out --questions and --question-tokens",
           job_.task.schema);
  if (statistics.documents && !job_.input.has_documents())
    refuse("estimate: a record of {} has one document; leave out --documents-per-record", job_.file);
  const int32_t most = job_.method.max_value_tokens;
  if (!statistics.instruction && job_.input.dataset.shots > 0) try {
      Job copy = job_;
      add_examples(copy);
      examples_ = true;
    } catch (const Error& error) {
      if (error.fault() != Fault::input) throw;
      notes_.push_back(
          fmt::format("the examples of input.shots ({}) are not counted: {}; set --instruction-tokens to the "
                      "length of the instruction with them",
                      job_.input.dataset.shots, error.what()));
    }
  open_tokenizer(asked);
  std::vector<Record> heads(1);
  heads[0].dialog.turns = {"?"};
  if (extract) {
    heads.clear();
    for (const Category& category : schema_.categories) heads.emplace_back().category = category.name;
  }
  make_records_ = [=, this](const Job::Method& method, Task* task) {
    std::vector<RecordHead> bins;
    for (const Record& head : heads) {
      auto bin = std::make_shared<BinParts>(*task->parts(head).bin);
      if (statistics.instruction) bin->instruction = make_up_tokens(*statistics.instruction);
      bins.emplace_back(task->bin_name(head), std::move(bin));
    }
    return with_findings(make_up_records(statistics, sampled_.sample, bins, most, apart(method, statistics)),
                         method);
  };
  notes_.push_back(fmt::format(
      "made-up records: {} tokens of instruction, {}, {}",
      statistics.instruction ? fmt::format("{:g}", *statistics.instruction)
                             : std::to_string(worded(job_.method).records[0].parts.bin->instruction.size()),
      document_text(statistics),
      extract ? fmt::format("the attributes of the categories of {} in turn", job_.task.schema)
              : questions_text(statistics)));
  if (extract) return assume_answers(asked);
  notes_.push_back(statistics.answer > most
                       ? fmt::format("answers of {:g} tokens, but at most method.max_value_tokens, {}",
                                     *statistics.answer, most)
                       : fmt::format("answers of {:g} tokens", *statistics.answer));
}

}  // namespace sheaf
