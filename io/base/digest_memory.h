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

/// Device, inode, size and times of a file as one text.
std::string file_state(const struct stat& file);

/// Whether a digest whose reading began `begun` seconds after the epoch may be remembered. Not if the file
/// was changed within the two seconds before: a change right after the look could leave its times as they
/// are.
bool is_settled(const struct stat& file, int64_t begun);

/// Keeps the digest of a file that is_settled().
void remember_digest(const struct stat& file, const std::string& digest, int64_t begun);

}  // namespace sheaf
