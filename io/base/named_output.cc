#include "io/base/named_output.h"

#include <cerrno>
#include <cstring>
#include <unistd.h>

#include "core/base/error.h"
#include "io/base/descriptor.h"
#include "io/base/file_layer.h"
#include "io/base/paths.h"

namespace sheaf {

namespace fs = std::filesystem;

void check_not_read(const std::string& path, const std::vector<std::string>& inputs) {
  std::error_code ignored;
  const fs::path target = fs::weakly_canonical(fs::absolute(path, ignored), ignored);
  for (const std::string& input : inputs) {
    const fs::path read = fs::weakly_canonical(fs::absolute(input, ignored), ignored);
    const bool inside = fs::is_directory(read, ignored) && target.parent_path() == read;
    if (!input.empty() && (target == read || inside || fs::equivalent(target, read, ignored)))
      refuse("{}: the command reads {}; write to another place", path, inside ? "this folder" : "this file");
  }
}

NamedOutput::NamedOutput(const std::string& path, const std::vector<std::string>& inputs)
    : folder_(fs::path(path).parent_path().string()), name_(fs::path(path).filename().string()) {
  if (folder_.empty()) folder_ = ".";
  if (name_.empty() || name_ == "." || name_ == "..") refuse("{}: this is a folder; name a file in it", path);
  if (!is_folder(folder_)) refuse("{}: the folder {} does not exist; create it first", path, folder_);
  check_regular(path);
  check_not_read(path, inputs);
  if (::access(folder_.c_str(), W_OK) != 0)
    refuse("{}: the file cannot be written: {}; name a file in a writable folder", path,
           std::strerror(errno));
}

void NamedOutput::write(std::string_view text) const {
  write_whole(real_files(), folder_, name_, text);
}

}  // namespace sheaf
