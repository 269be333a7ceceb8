#pragma once
#include <cstdint>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/task/record.h"
#include "io/run_folder/manifest.h"

namespace sheaf {

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
