#pragma once
#include <optional>
#include <string>
#include <vector>

#include "io/base/file_layer.h"

namespace sheaf {

struct FileText {
  std::string name;
  std::optional<std::string> text;  ///< nothing: the file is to go
};

/// Writes files that belong together. Whatever stops it, those in the folder are all old ones or all new
/// ones; what is missing then comes with the next try. Files that are as they should be are left alone.
void write_together(FileLayer& files, const std::string& folder, const std::vector<FileText>& texts);

}  // namespace sheaf
