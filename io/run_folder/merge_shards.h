#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "io/base/file_layer.h"

namespace sheaf {

struct Merged {
  int64_t rows = 0, rejects = 0, files = 0;
  std::string notice;         ///< what the merge lacks, and why; empty: nothing
  bool was_finished = false;  ///< the folder held this very merge before; nothing was written
};

inline constexpr const char* kMergeMark = ".merging";  ///< in a folder whose merge is not done

/// Joins the run folders of all shards of one job, given in any order: their rows files are copied in input
/// order and numbered again, their rejects follow one another. Refuses shards that are not finished, of
/// another job, given twice or missing, and files whose bytes are no longer those of the manifest. A merge
/// that was cut off is begun again; a folder with anything else in it is refused.
/// `more` may add files to the folder `out` before it is finished; what it returns is a notice.
using MergeMore = std::function<std::string(const std::string& out, const std::vector<std::string>& shards)>;
Merged merge_shards(FileLayer& files, const std::string& folder, const std::vector<std::string>& paths,
                    const MergeMore& more = {});

}  // namespace sheaf
