#pragma once
#include <string>
#include <vector>

#include "core/base/interrupted.h"
#include "io/passages/passage_index.h"

namespace sheaf {

/// Where a collection of passages lies, and its index.
struct PassageFiles {
  std::string corpus;      ///< a file, a folder, a glob or a URI
  std::string index;       ///< empty: beside the corpus, which then is a file or a folder
  std::string where = {};  ///< begins messages about it: "job.yaml:3: input.corpus: "
  const std::atomic<bool>* stop = &interrupted;  ///< set once making an index is to stop
};

/// The file of the index. Refuses a glob or a URI that has none of its own.
std::string index_path(const PassageFiles& files);

/// What tells whether the passages are still those that an index was made from: their files, by their names
/// below the folder that all are in.
nlohmann::json passages_fingerprint(const PassageFiles& files);

/// The index of a collection. Makes it where it is missing, damaged or of another state of the collection;
/// two processes that want it at once make it once. Adds to `notices` what was made and which passages were
/// left out.
std::shared_ptr<const PassageIndex> open_passages(const PassageFiles& files,
                                                  std::vector<std::string>& notices);

/// Writes an index of passages to a file, over what it holds. `corpus`: how messages call the collection;
/// `about`: what PassageIndex::about() gives; `threads`: how many invert passages while they are read. Throws
/// once `stop` is set.
void build_index(PassageReader& passages, const std::string& corpus, nlohmann::json about,
                 const std::string& path, int threads, const std::atomic<bool>& stop);

}  // namespace sheaf
