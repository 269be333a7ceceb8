#include "io/jobs/exchange_job.h"

#include <ctime>
#include <filesystem>
#include <fmt/chrono.h>
#include <optional>
#include <unordered_set>

#include "core/report/report.h"
#include "core/task/spelled_task.h"
#include "core/text/spelling.h"
#include "io/base/file_identity.h"
#include "io/base/file_layer.h"
#include "io/base/named_output.h"
#include "io/base/store_uri.h"
#include "io/corpus/corpus.h"
#include "io/corpus/example_file.h"
#include "io/files/batch_replies.h"
#include "io/files/batch_request.h"
#include "io/files/job_file.h"
#include "io/files/job_fingerprint.h"
#include "io/files/job_keys.h"
#include "io/files/predictions.h"
#include "io/passages/build_index.h"
#include "io/passages/passages.h"
#include "io/run_folder/output_place.h"
#include "io/run_folder/run_folder.h"

namespace sheaf {
namespace {

using nlohmann::ordered_json;

constexpr size_t kToldReplies = 20;
constexpr int64_t kGroupRows = 1000;
constexpr int32_t kAnyLength = 1 << 30;  // tokens: a service has limits of its own

/// A job with what its prompts are made of; its model stays closed.
class SpelledJob {
 public:
  explicit SpelledJob(Job job) : job_(std::move(job)) {
    if (job_.input.path == "-")
      refuse("{}: the corpus is standard input, which cannot be read again with the replies; name a file",
             job_.file);
    if (!job_.input.corpus.empty())
      job_.input.passages = std::make_shared<Passages>(passage_files(job_), notices_);
    if (job_.task.kind == TaskKind::extract) {
      schema_ = read_schema(job_);
      if (std::string notice = category_notice(job_, schema_); !notice.empty())
        notices_.push_back(std::move(notice));
    }
    job_.method.prompt_tokens = kAnyLength;
    examples_ = read_examples(job_, schema_, kAnyLength, notices_);
    task_.emplace(job_, schema_, examples_);
  }

  const Job& job() const { return job_; }
  const Schema& schema() const { return schema_; }
  SpelledTask& task() { return *task_; }
  const std::vector<std::string>& notices() const { return notices_; }
  std::unique_ptr<Corpus> corpus() const {
    return open_corpus(job_, job_.task.kind == TaskKind::extract ? &schema_ : nullptr);
  }

 private:
  Job job_;
  std::vector<std::string> notices_;
  Schema schema_;
  Examples examples_;
  std::optional<SpelledTask> task_;
};

/// The first rejects in words, and how many there are.
void tell_reject(const Reject& reject, std::vector<std::string>& told, int64_t& count) {
  if (told.size() < kToldReplies)
    told.push_back(fmt::format("{}:{}: {}{}", reject.place.file, reject.place.row,
                               reject.id.is_null() ? "" : shorten_text(reject.id.dump(), 80) + ": ",
                               reject.reason));
  count += reject.records;
}

/// A file that gets its name once it is whole.
class LinesFile {
 public:
  explicit LinesFile(const std::string& path) : path_(path), part_(path + ".part") {
    real_files().remove(part_);
    file_ = real_files().open(part_);
  }
  LinesFile(const LinesFile&) = delete;
  LinesFile& operator=(const LinesFile&) = delete;
  ~LinesFile() {
    if (!file_) return;
    std::error_code ignored;
    std::filesystem::remove(part_, ignored);
  }

  void add(const std::string& line) {
    file_->append(line);
    bytes_ += std::ssize(line);
  }
  int64_t bytes() const { return bytes_; }
  void finish() {
    file_->sync();
    real_files().rename(part_, path_);
    file_.reset();
  }

 private:
  std::string path_, part_;
  std::unique_ptr<OutputFile> file_;
  int64_t bytes_ = 0;
};

/// Throws a BadText for a record with an id that an earlier one has.
void check_ids(const std::vector<std::string>& ids, std::unordered_set<std::string>& used) {
  for (const std::string& id : ids)
    if (!used.insert(id).second)
      throw BadText(
          fmt::format("an earlier record has the id {}, so replies could not be told apart; set "
                      "input.id to a column whose values differ",
                      ordered_json(shorten_text(id, 80)).dump()));
}

/// Takes each record of a corpus; a BadText or an input error rejects it. False where it was interrupted.
template <class Take, class RejectIt>
bool each_record(Corpus& corpus, const std::atomic<bool>& stop, const Take& take, const RejectIt& reject_it) {
  while (auto next = corpus.next()) {
    if (stop) return false;
    if (const auto* reject = std::get_if<Reject>(&*next)) {
      reject_it(*reject);
      continue;
    }
    const Record& record = std::get<Record>(*next);
    try {
      take(record);
    } catch (const BadText& bad) {
      reject_it(Reject{record.place, record.id, bad.reason});
    } catch (const Error& error) {
      if (error.fault() != Fault::input) throw;
      reject_it(Reject{record.place, record.id, error.what()});
    }
  }
  return true;
}

void check_target(const std::string& path, const Job& job, const std::vector<std::string>& more) {
  std::vector<std::string> read = paths_read(job);
  read.insert(read.end(), more.begin(), more.end());
  for (const std::string& file : find_corpus_files(job.input).files) read.push_back(file);
  const NamedOutput checked(path, read);
}

/// The run of a job whose answers came as replies.
class Import {
 public:
  Import(SpelledJob& opened, const ImportSettings& settings)
      : opened_(opened), settings_(settings), job_(opened.job()), replies_(settings.replies) {
    if (is_uri(settings.to)) refuse("{}: name a folder of this machine", settings.to);
    if (job_.output.format == OutputFormat::openai_batch)
      refuse("{}: output.format openai-batch holds replies as they are; use jsonl, parquet or arrow",
             job_.file);
    fingerprint_ = make_fingerprint();
    folder_.emplace(real_files(), options());
  }

  ImportEnd run() {
    if (folder_->finished()) {
      end_.rows = folder_->rows();
      end_.rejected = folder_->rejects();
      end_.notice = fmt::format("{} already holds these replies", settings_.to);
      end_.finished = true;
      return end_;
    }
    if (folder_->position() > 0)
      refuse("{}: an import was interrupted here; use --restart to begin again", settings_.to);
    const auto corpus = opened_.corpus();
    std::unordered_set<std::string> used;
    int64_t in_group = 0;
    const auto next_group = [&] {
      if (++in_group % kGroupRows == 0) folder_->commit(corpus->position());
    };
    const bool whole = each_record(
        *corpus, *job_.stop,
        [&](const Record& record) {
          const std::vector<std::string> ids = request_ids(job_, record);
          check_ids(ids, used);
          const Row row = read_row(record, ids);
          folder_->row(row);
          statistics_.row(row, {}, record);
          ++end_.rows;
          next_group();
        },
        [&](const Reject& reject) {
          reject_it(reject);
          next_group();
        });
    if (!whole) return end_;
    for (const Reject& reject : replies_.left()) reject_it(reject);
    const int64_t position = corpus->position();
    folder_->commit(position);
    if (end_.rows == 0) {
      folder_->show_rejects();
      refuse("{}: no reply can be used; the first: {}", settings_.replies.front(),
             end_.rejects.empty() ? "the corpus has no records" : end_.rejects.front());
    }
    folder_->finish(report().dump(2) + "\n");
    end_.finished = true;
    return end_;
  }

 private:
  /// The run is that of the job with these replies in place of a model.
  ordered_json make_fingerprint() const {
    Job job = job_;
    job.model.path.clear();
    job.model.adapter.clear();
    ordered_json print = job_fingerprint(job, false, {});
    ordered_json files = ordered_json::object();
    for (const std::string& path : settings_.replies)
      files[std::filesystem::path(path).filename().string()] =
          identity_json(identify_file(path, Look::every_byte));
    print["device"] = "replies";
    print["model"] = std::move(files);
    return print;
  }

  RunFolderOptions options() const {
    RunFolderOptions options;
    options.path = settings_.to;
    options.rows_per_file = job_.output.rows_per_file;
    options.fingerprint = fingerprint_;
    options.sources = {job_.input.path, job_.task.schema};
    options.corpus_folder = common_folder(find_corpus_files(job_.input).files);
    options.restart = settings_.restart;
    if (const OutputFormat format = job_.output.format; is_table(format)) {
      options.ending = rows_ending(format);
      options.writer = [format, columns = row_columns(job_, opened_.schema(), has_integer_ids(job_.input))](
                           OutputFile& target) { return write_table_rows(format, columns, target); };
    }
    return options;
  }

  Row read_row(const Record& record, const std::vector<std::string>& ids) {
    std::vector<std::optional<SpelledReply>> replies;
    std::string trouble;
    for (const std::string& id : ids) try {
        replies.push_back(replies_.find(id));
      } catch (const BadText& bad) {
        if (ids.size() == 1) throw;
        replies.emplace_back();
        trouble = bad.reason;
      }
    try {
      return opened_.task().row(record, replies);
    } catch (const BadText& bad) {
      throw BadText(trouble.empty() ? bad.reason : trouble);
    }
  }

  void reject_it(const Reject& reject) {
    folder_->reject(reject);
    statistics_.reject(reject);
    tell_reject(reject, end_.rejects, end_.rejected);
  }

  ordered_json report() const {
    Report about;
    about.job = job_.file;
    about.model = settings_.replies.front();
    about.backend = "replies of a service";
    about.method = "import";
    about.chat = "none";
    about.date = fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(std::time(nullptr)));
    about.settings = fingerprint_.at("job");
    about.corpus = job_.input.path;
    about.limit = job_.input.limit;
    about.pipeline.records = about.pipeline.decoded = end_.rows;
    about.pipeline.rejects = end_.rejected;
    about.statistics = statistics_;
    return report_json(about);
  }

  SpelledJob& opened_;
  const ImportSettings& settings_;
  const Job& job_;
  BatchReplies replies_;
  ordered_json fingerprint_;
  std::optional<RunFolder> folder_;
  RunStatistics statistics_;
  ImportEnd end_;
};

/// A judge's replies as `sheaf score --judgements` reads them.
ImportEnd import_judgements(const ImportSettings& settings, BatchReplies& replies, SpelledJob& opened) {
  ImportEnd end;
  check_target(settings.to, opened.job(), settings.replies);
  LinesFile file(settings.to);
  const auto corpus = opened.corpus();
  std::unordered_set<std::string> used;
  const auto reject_it = [&](const Reject& reject) { tell_reject(reject, end.rejects, end.rejected); };
  const bool whole = each_record(
      *corpus, *opened.job().stop,
      [&](const Record& record) {
        const std::vector<std::string> ids = request_ids(opened.job(), record);
        check_ids(ids, used);
        const auto reply = replies.find(ids.front());
        if (!reply) return;  // the run has no row of it, or the judge did not answer: counted below
        const ordered_json line{{"id", record.id}, {"category", record.category}, {"reply", reply->text}};
        file.add(line.dump(-1, ' ', false, ordered_json::error_handler_t::replace) + "\n");
        ++end.rows;
      },
      reject_it);
  if (!whole) return end;
  for (const Reject& reject : replies.left()) reject_it(reject);
  if (end.rows == 0)
    refuse("{}: no reply can be used; the first: {}", settings.replies.front(),
           end.rejects.empty() ? "the corpus has no records" : end.rejects.front());
  file.finish();
  end.finished = true;
  return end;
}

}  // namespace

ExportEnd export_requests(const Job& job, const ExportSettings& settings) {
  ExportEnd end;
  SpelledJob opened(job);
  end.notices = opened.notices();
  const bool judge = !settings.judge.empty();
  if (judge && job.task.kind != TaskKind::extract)
    refuse("--judge works only with task.kind extract; this job has task.kind {}", word_of(job.task.kind));
  check_target(settings.to, opened.job(), {settings.judge});
  std::optional<Predictions> run;
  if (judge) run = read_predictions(settings.judge);
  LinesFile file(settings.to);
  std::unordered_set<std::string> used;
  const auto corpus = opened.corpus();
  end.finished = each_record(
      *corpus, *job.stop,
      [&](const Record& record) {
        check_ids(request_ids(job, record), used);
        std::vector<SpelledRequest> requests;
        if (judge) {
          const std::string id = id_text(record.id);
          const auto row = run->by_id.find(id);
          if (row == run->by_id.end()) {
            ++end.without_row;
            return;
          }
          const Category& category = opened.schema().of(record.category);
          requests.push_back({id, judge_dialog(category, record.document, row->second)});
        } else {
          requests = opened.task().requests(record);
        }
        for (const SpelledRequest& request : requests)
          file.add(batch_request(request.id, request.dialog, settings.body));
        ++end.records;
        end.requests += std::ssize(requests);
      },
      [&](const Reject& reject) { tell_reject(reject, end.rejects, end.rejected); });
  if (!end.finished) return end;
  if (end.requests == 0)
    refuse("{}: no request could be written: {}", job.input.path,
           end.rejects.empty() ? "no record of it has a row in the run" : end.rejects.front());
  end.bytes = file.bytes();
  file.finish();
  return end;
}

ImportEnd import_replies(const Job& job, const ImportSettings& settings) {
  SpelledJob opened(job);
  ImportEnd end;
  if (settings.judge) {
    BatchReplies replies(settings.replies);
    end = import_judgements(settings, replies, opened);
  } else {
    Job job_there = opened.job();
    job_there.output.path = settings.to;
    check_output_apart(job_there);
    end = Import(opened, settings).run();
  }
  for (const std::string& notice : opened.notices()) end.notice += (end.notice.empty() ? "" : "; ") + notice;
  return end;
}

}  // namespace sheaf
