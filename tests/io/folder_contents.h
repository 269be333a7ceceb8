#pragma once
#include <map>
#include <string>

#include "io/base/file_layer.h"

namespace sheaf {

/// The files of a folder but its lock, by name.
using FolderContents = std::map<std::string, std::string>;

inline FolderContents contents(const std::string& path) {
  FolderContents files;
  for (const std::string& name : list_folder(path))
    if (name != ".lock") files[name] = *read_whole(path + "/" + name);
  return files;
}

}  // namespace sheaf
