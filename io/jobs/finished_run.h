#pragma once
#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "core/job/job.h"
#include "core/task/record.h"
#include "core/task/schema.h"
#include "io/run_folder/manifest.h"

namespace sheaf {

/// A run's folder, and where its corpus and its schema are now; empty: where the run found them.
struct RunPlaces {
  std::string run, input, schema;
};

/// A finished run of an extract job, with the corpus and the schema that it was run on.
class FinishedRun {
 public:
  /// Refuses a run that is not finished or not of an extract job, and a corpus or schema that is not the
  /// run's. With `unfinished`, a run that is not finished counts as far as it came.
  explicit FinishedRun(const RunPlaces& places, bool unfinished = false);

  bool is_finished() const { return !manifest_.files.back().name.ends_with(".part"); }

  const Manifest& manifest() const { return manifest_; }
  const Schema& schema() const { return schema_; }
  const std::vector<std::string>& files() const { return files_; }  ///< of the corpus
  const std::string& schema_path() const { return schema_path_; }

  /// The records of some rows, in their order; the corpus is read again for them. `id_of` says which id a row
  /// has, where that is known: refuses a corpus that has another there.
  std::vector<Record> records(const std::set<int64_t>& rows,
                              const std::function<const std::string*(int64_t row)>& id_of) const;

 private:
  std::string run_;
  Manifest manifest_;
  Job job_;
  std::string schema_path_;
  Schema schema_;
  std::vector<std::string> files_;
};

}  // namespace sheaf
