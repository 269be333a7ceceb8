#pragma once
#include <string>

namespace sheaf {

/// The folder from which the paths that are written in `file` are taken. A pipe has none: empty, which is the
/// working directory.
std::string folder_of_file(const std::string& file);

/// A path as the program opens it: `~`, `$NAME` and `${NAME}` are replaced, and a relative path is taken from
/// `folder`, one after `$PWD/` from the working directory. `where` begins the error about a variable that is
/// not set. A URL is left as it is.
std::string resolve_path(const std::string& written, const std::string& folder, const std::string& where);

}  // namespace sheaf
