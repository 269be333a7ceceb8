#pragma once
#include <functional>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/task/record.h"
#include "core/task/row.h"
#include "core/task/schema.h"
#include "io/run_folder/manifest.h"

namespace sheaf {

/// Hands over the rows of a finished run of an extract or ask job in input order, from JSON lines or Parquet.
/// Refuses a file that is missing, was changed or holds what sheaf did not write. `schema`: of the run, whose
/// table has every category's attributes in every row; without categories: an ask job.
void read_rows(const std::string& folder, const Manifest& manifest, const Schema& schema,
               const std::function<void(Row&&)>& take);

/// The places of the records of a finished run that have no row, from its rejects.jsonl.
class RejectedRecords {
 public:
  /// `files`: those of the run's corpus in the run's order, called as they are now. Refuses a file that is
  /// missing, was changed or holds what sheaf did not write.
  RejectedRecords(const std::string& folder, const Manifest& manifest, const std::vector<std::string>& files);

  bool has(const Place& place) const;

 private:
  std::unordered_map<std::string, size_t> numbers_;  ///< of the files, by name
  std::set<std::pair<size_t, int64_t>> places_;      ///< file, row
};

}  // namespace sheaf
