#pragma once
#include <string>
#include <string_view>

namespace sheaf {

/// A file that the user named for a result. It is checked before the work and written whole after it; what
/// was there before stays until then.
class NamedOutput {
 public:
  /// Refuses a path that cannot be written, or that is a folder, a pipe or a device.
  explicit NamedOutput(const std::string& path);
  void write(std::string_view text) const;

 private:
  std::string folder_, name_;
};

}  // namespace sheaf
