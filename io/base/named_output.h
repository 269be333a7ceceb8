#pragma once
#include <string>
#include <string_view>
#include <vector>

namespace sheaf {

/// A file that the user named for a result. It is checked before the work and written whole after it; what
/// was there before stays until then.
class NamedOutput {
 public:
  /// Refuses a path that cannot be written, that is a folder, a pipe or a device, or that is one of the files
  /// (or lies in one of the folders) that the command reads.
  explicit NamedOutput(const std::string& path, const std::vector<std::string>& inputs = {});
  void write(std::string_view text) const;

 private:
  std::string folder_, name_;
};

/// Refuses a path that is one of the files, or lies in one of the folders, that the command reads.
void check_not_read(const std::string& path, const std::vector<std::string>& inputs);

}  // namespace sheaf
