#pragma once
#include <filesystem>
#include <fstream>
#include <map>
#include <ranges>
#include <string>
#include <vector>

#include "tests/files.h"

namespace sheaf {

/// The files of a folder and of those in it but locks, by path; a folder in it ends with a slash.
using FolderContents = std::map<std::string, std::string>;

inline FolderContents contents(const std::string& path) {
  namespace fs = std::filesystem;
  FolderContents files;
  if (!fs::is_directory(path)) return files;
  for (const auto& entry : fs::recursive_directory_iterator(path)) {
    const std::string name = entry.path().string().substr(path.size() + 1);
    if (entry.is_directory())
      files[name + "/"] = "";
    else if (entry.path().filename() != ".lock")
      files[name] = read_text(entry.path());
  }
  return files;
}

/// Makes a folder hold these files and nothing else but the locks that are there.
inline void put_back(const std::string& path, const FolderContents& files) {
  namespace fs = std::filesystem;
  std::vector<fs::path> there;
  if (fs::is_directory(path))
    for (const auto& entry : fs::recursive_directory_iterator(path)) there.push_back(entry.path());
  std::error_code ignored;  // a folder with a lock in it stays
  for (const fs::path& each : std::views::reverse(there))
    if (each.filename() != ".lock") fs::remove(each, ignored);
  if (!files.empty()) fs::create_directories(path);
  for (const auto& [name, text] : files)
    if (name.ends_with('/'))
      fs::create_directories(path + "/" + name);
    else
      std::ofstream(path + "/" + name, std::ios::binary)
          .write(text.data(), static_cast<std::streamsize>(text.size()));
}

}  // namespace sheaf
