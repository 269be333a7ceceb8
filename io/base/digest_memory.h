#pragma once
#include <cstdint>
#include <optional>
#include <string>

struct stat;

namespace sheaf {

/// Digests of large files that this user's earlier commands read whole, in the user's cache folder. A digest
/// holds for as long as device, inode, size and both times of its file do. Where there is no such folder, or
/// it cannot be written, nothing is remembered.
std::optional<std::string> remembered_digest(const struct stat& file);

/// `begun`: seconds since the epoch when reading began. A file that was changed within the two seconds before
/// is not remembered: a change right after the look could leave its times as they are.
void remember_digest(const struct stat& file, const std::string& digest, int64_t begun);

}  // namespace sheaf
