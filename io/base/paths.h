#pragma once
#include <filesystem>
#include <string>

namespace sheaf {

/// Whether something is there that can be looked at.
bool is_there(const std::filesystem::path& path);
bool is_folder(const std::filesystem::path& path);

/// The folder from which the paths that are written in `file` are taken. A pipe has none: empty, which is the
/// working directory.
std::string folder_of_file(const std::string& file);

/// A path as the program opens it: `~`, `$NAME` and `${NAME}` are replaced, and a relative path is taken from
/// `folder`, one after `$PWD/` from the working directory. `where` begins the error about a variable that is
/// not set. A URL is left as it is.
std::string resolve_path(const std::string& written, const std::string& folder, const std::string& where);

/// A file that is installed with the program: share/sheaf/`name` in a folder above it; "" where there is
/// none.
std::string find_installed_file(const std::string& name);

/// $XDG_CACHE_HOME/sheaf or ~/.cache/sheaf; empty where neither is set to an absolute path.
std::string user_cache();

}  // namespace sheaf
