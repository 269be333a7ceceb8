#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace sheaf {

/// What a look at every byte of a finished run found.
struct RunCheck {
  int64_t rows = 0, rejects = 0;
  int64_t files = 0, bytes = 0;       ///< of those that the manifest lists
  std::vector<std::string> troubles;  ///< empty: the run is as it was written
};

/// Compares the files of a run, in a folder or a store, with its manifest: names, sizes and SHA-256. Refuses
/// a place without a run.
RunCheck check_run(const std::string& place);

}  // namespace sheaf
