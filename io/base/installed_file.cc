#include "io/base/installed_file.h"

#include <filesystem>

namespace sheaf {

namespace fs = std::filesystem;

std::string find_installed_file(const std::string& name) {
  std::error_code ignored;
  const fs::path program = fs::read_symlink("/proc/self/exe", ignored);
  for (fs::path folder = program.parent_path(); folder.has_relative_path(); folder = folder.parent_path())
    if (const fs::path file = folder / "share/sheaf" / name; fs::is_regular_file(file, ignored))
      return file.string();
  return "";
}

}  // namespace sheaf
