#pragma once
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "io/base/file_layer.h"

namespace sheaf {

/// A run that replaces the one in a folder, OUT, once it is finished. It is built beside it, in OUT.restart,
/// whose file .restart tells it from a run of somebody else. Then the two folders are exchanged, in one step
/// where the file system can, so that OUT always holds a whole run. What was there is removed or kept as
/// OUT.previous; files in it that no run writes stay in OUT.
class Restart {
 public:
  /// Locks the folder. Refuses what is in the way.
  Restart(FileLayer& files, const std::string& folder, bool keep_previous);

  /// Where the new run is built.
  const std::string& building() const { return building_; }
  /// Whether a restart of that job was begun before and can be resumed.
  bool is_begun(const nlohmann::ordered_json& fingerprint) const;
  /// After the new run is finished.
  void swap();

 private:
  FileLayer& files_;
  std::string folder_, building_;
  bool keep_previous_;
  std::unique_ptr<FolderLock> lock_;
};

/// Ends an exchange that was cut short, so that the folder is there and holds one whole run.
void settle_restart(FileLayer& files, const std::string& folder);

/// Where a restart of the run in a folder has answers and is not finished; empty: nowhere.
std::string unfinished_restart(const std::string& folder);

}  // namespace sheaf
