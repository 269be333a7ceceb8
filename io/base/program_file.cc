#include "io/base/program_file.h"

#include <dlfcn.h>
#include <filesystem>
#include <link.h>

namespace sheaf {
namespace {

namespace fs = std::filesystem;

}  // namespace

std::string program_file() {
  std::error_code ignored;
  Dl_info about{};
  link_map* library = nullptr;
  // The program itself has no name in this list.
  if (dladdr1(reinterpret_cast<const void*>(&program_file), &about, reinterpret_cast<void**>(&library),
              RTLD_DL_LINKMAP) != 0 &&
      library && *library->l_name)
    return fs::weakly_canonical(library->l_name, ignored).string();
  return fs::read_symlink("/proc/self/exe", ignored).string();
}

std::string find_above_program(const std::string& name) {
  std::error_code ignored;
  for (fs::path folder = fs::path(program_file()).parent_path(); folder.has_relative_path();
       folder = folder.parent_path())
    if (const fs::path file = folder / name; fs::is_regular_file(file, ignored)) return file.string();
  return "";
}

}  // namespace sheaf
