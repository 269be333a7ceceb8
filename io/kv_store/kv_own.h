#pragma once
#include <filesystem>
#include <string>

namespace sheaf {

/// What a file in the folder of a store is to the store, which never touches what is not its own.
enum class KvOwn {
  no,
  kept,   ///< ab/ab….kv, the file of a key: its 64 hex digits in a folder named by the first two
  staged  ///< ab/ab….kv.….part, a file that is being written or was left behind
};

/// By the name, and by what is there: a link, or anything else but a regular file, is not the store's own,
/// and neither is a file that is not there, or one in a folder that is a link. `path`: FOLDER/ab/NAME.
KvOwn own_kind(const std::filesystem::path& path);

/// Whether a store may have such a folder, directly below its own.
bool is_own_folder(const std::filesystem::path& path);
bool is_own_folder_name(const std::string& name);

}  // namespace sheaf
