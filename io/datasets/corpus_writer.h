#pragma once
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>

#include "core/job/words.h"
#include "io/base/file_layer.h"

namespace sheaf {

/// Writes rows of sheaf's own corpus (DatasetRow::cells) as JSON lines, or as Parquet where the name ends in
/// .parquet. The file has its name only once it is whole; one that was there is replaced.
class CorpusWriter {
 public:
  /// Refuses a name that ends in neither .jsonl nor .parquet. `task` is ask or extract.
  CorpusWriter(const std::string& path, TaskKind task);
  ~CorpusWriter();
  CorpusWriter(const CorpusWriter&) = delete;
  CorpusWriter& operator=(const CorpusWriter&) = delete;

  void add(const nlohmann::ordered_json& row);
  void finish();

 private:
  void write_parquet(const std::string& target) const;

  std::string path_;
  TaskKind task_;
  std::string lines_path_;
  std::unique_ptr<OutputFile> lines_;
  std::string buffer_;
  bool documents_ = false;  // some row has a list of them
};

}  // namespace sheaf
