#pragma once
#include <cstdint>
#include <functional>
#include <string>

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

}  // namespace sheaf
