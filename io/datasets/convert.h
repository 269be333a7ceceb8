#pragma once
#include "io/base/file_layer.h"
#include "io/datasets/dataset.h"

namespace sheaf {

struct ConvertSettings {
  DatasetOptions dataset;
  int64_t limit = 0;   ///< most entries to read, broken ones counted; 0: all
  std::string schema;  ///< extract: where to write the schema of what was read; empty: nowhere
};

struct Converted {
  int64_t rows = 0, questions = 0, rejects = 0;
  int64_t unanswerable = 0;  ///< questions whose text holds no answer
};

/// Writes a dataset as a corpus of sheaf's own (.jsonl or .parquet). Broken entries are left out and told;
/// where no other is left, nothing is written.
Converted convert_dataset(const std::string& format, const std::string& from, const std::string& to,
                          const ConvertSettings& settings,
                          const std::function<void(const DatasetRow&)>& on_reject);

/// Writes rows of sheaf's own corpus (DatasetRow::cells) as JSON lines, or as Parquet where the name ends in
/// .parquet. The file has its name only once it is whole; one that was there is replaced.
class CorpusWriter {
 public:
  /// Refuses a name that ends in neither .jsonl nor .parquet. `task` is ask or extract.
  CorpusWriter(const std::string& path, TaskKind task);
  ~CorpusWriter();
  CorpusWriter(const CorpusWriter&) = delete;
  CorpusWriter& operator=(const CorpusWriter&) = delete;

  void add(const ordered_json& row);
  void finish();

 private:
  std::string path_;
  TaskKind task_;
  std::string lines_path_;
  std::unique_ptr<OutputFile> lines_;
  std::string buffer_;
  bool documents_ = false;  // some row has a list of them
  bool text_ids_ = false;   // some id is text
};

}  // namespace sheaf
