#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "core/task/record.h"
#include "core/task/row.h"
#include "io/run_folder/journal.h"
#include "io/run_folder/row_sink.h"
#include "io/run_folder/table_rows.h"

namespace sheaf {

struct RunFolderOptions {
  std::string path;
  int64_t rows_per_file = 1000000;  ///< a rows file ends with the group that reaches it, or a later one
  /// Everything that decides what the rows are, as nested JSON; a folder resumes only under an equal one.
  nlohmann::ordered_json fingerprint;
  RunSources sources = {};
  std::string corpus_folder = {};  ///< common_folder() of the corpus; rejects name files below it
  int64_t first_row = 0;           ///< of the corpus: where the run begins
  bool restart = false;            ///< throw away what is there

  std::string ending = ".jsonl";  ///< of the rows files
  /// Makes the writer of a rows file of that ending; empty: the rows file is JSON lines.
  std::function<std::unique_ptr<RowsWriter>(OutputFile& target)> writer;
  /// A row as a line of the rows file where that is lines; empty: row_line().
  std::function<std::string(const Row& row)> line;
  bool openai_errors = false;  ///< the finished run has errors.jsonl too, as OpenAI's batch API has it
};

/// Refuses a folder that holds other files than those of a run, so that a mistaken output.path costs nobody
/// theirs. `replaced`: a finished merge may be there too.
void check_own_folder(const std::string& path, bool replaced);

/// What the run in a folder was started as (RunFolderOptions::fingerprint); null where there is none, or none
/// that can be read.
nlohmann::ordered_json started_as(const std::string& folder);

/// The folder of a run: rows-00000.jsonl…, rejects.jsonl, journal, manifest.json, report.json, and _SUCCESS
/// last; progress.json until then. Rows come in groups. A group is committed when its rows and rejects are
/// durable and a journal line says so; a folder opened again resumes after its last committed group. Files
/// that may still grow end in .part. After an exception, discard the object; the folder can be opened again.
class RunFolder : public RowSink {
 public:
  RunFolder(FileLayer& files, RunFolderOptions options);

  /// Whether the run was finished before; then nothing may be written.
  bool finished() const { return finished_; }
  int64_t position() const override { return at_.position; }
  int64_t rows() const override { return at_.rows; }
  int64_t rejects() const override { return at_.rejects; }
  /// What was found wrong and mended when the folder was opened; empty: nothing.
  const std::string& notice() const { return notice_; }

  /// Text that is not UTF-8 is written with replacement characters.
  void row(const Row& row) override;
  void reject(const Reject& reject) override;
  /// A rows file that is full ends with the first group after which it `may_end`.
  void commit(int64_t position, bool may_end = true) override;
  /// Gives rejects.jsonl its name though the run is not finished; nothing may be written after it.
  void show_rejects();
  void save_progress(const std::string& text) override;
  std::string saved_progress() const override { return saved_progress_; }
  /// Publishes every file and marks the run as finished. `page`: report.html; empty: none.
  void finish(const std::string& report, const std::string& page = "");

 private:
  std::string path(const std::string& name) const { return options_.path + "/" + name; }
  std::string rows_name(int64_t file) const;
  std::string staged_rows(int64_t file) const;
  bool check_finished();
  void open_folder();
  void check_same(const nlohmann::ordered_json& fingerprint, bool finished) const;
  void begin();
  void resume(const std::string& text);
  void take_back(const std::string& staged, const std::string& name);
  void forget_damaged(std::vector<RunProgress>& places);
  void remove_files(int64_t first_rows_file);
  void append(std::unique_ptr<OutputFile>& file, const std::string& staged, bool fresh,
              const std::string& text);
  void open_writer();
  PublishedFile close_writer();
  void publish();
  void write_file(const std::string& name, std::string_view text);
  Manifest manifest() const;

  FileLayer& files_;
  RunFolderOptions options_;
  bool finished_ = false;
  std::string notice_, saved_progress_;
  std::unique_ptr<FolderLock> lock_;
  std::unique_ptr<JournalWriter> journal_;
  RunProgress at_;
  std::vector<PublishedFile> published_;
  Sha256 file_sum_, rejects_sum_;

  std::unique_ptr<OutputFile> rows_file_, rejects_file_;
  std::unique_ptr<OutputFile> written_file_;  // by the writer: the rows file that the staged lines stand for
  std::unique_ptr<RowsWriter> writer_;
  std::string group_rows_, group_rejects_;  // of the group that is being filled
  int64_t group_row_count_ = 0, group_reject_count_ = 0;
};

}  // namespace sheaf
