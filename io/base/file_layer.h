#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace sheaf {

/// A file being written, at its end only.
class OutputFile {
 public:
  virtual ~OutputFile() = default;
  virtual void append(std::string_view bytes) = 0;
  virtual void truncate(int64_t size) = 0;
  /// Returns when the bytes would outlive a power loss. The file's name does so only after sync_folder().
  virtual void sync() = 0;
  /// Whether the path still leads to it.
  virtual bool is_at(const std::string& /*path*/) const { return true; }
};

/// Holds a folder for one process, until it is destroyed or the process ends, however it ends.
class FolderLock {
 public:
  virtual ~FolderLock() = default;
  /// Refuses to continue where the folder is no longer the one that was locked: another process deleted or
  /// replaced it.
  virtual void check() const = 0;
  /// What the user should know about it; empty: nothing.
  virtual std::string notice() const { return {}; }
};

/// Everything a run does to its folder goes through here, so that tests can make any of it fail. What fails
/// throws a fatal Error that names the path and the reason.
class FileLayer {
 public:
  virtual ~FileLayer() = default;
  /// Opens a file to append to, made where it is absent.
  virtual std::unique_ptr<OutputFile> open(const std::string& path) = 0;
  virtual void rename(const std::string& from, const std::string& to) = 0;
  /// An absent file is fine.
  virtual void remove(const std::string& path) = 0;
  virtual void make_folder(const std::string& path) = 0;
  /// An empty one; an absent one is fine.
  virtual void remove_folder(const std::string& path) = 0;
  /// Exchanges two folders in one step. False where the file system cannot, which then did nothing.
  virtual bool exchange(const std::string& a, const std::string& b) = 0;
  virtual void sync_folder(const std::string& path) = 0;
  /// Refuses where another process holds the folder, naming it.
  virtual std::unique_ptr<FolderLock> lock(const std::string& folder) = 0;
};

/// The operating system's files.
FileLayer& real_files();

// Reading cannot harm a run folder, so it goes straight to the operating system.

/// The whole file; nothing where there is none. Refuses one of more than `most` bytes.
std::optional<std::string> read_whole(const std::string& path, int64_t most = int64_t{256} << 20);
/// Its first `size` bytes, or all where it has fewer; nothing where there is none.
std::optional<std::string> read_beginning(const std::string& path, size_t size);
/// Hands the file over piece by piece; false where there is none.
bool read_pieces(const std::string& path, const std::function<void(std::string_view)>& take);
/// Hands the lines of the file over without their ends; a last one that has none is left out.
void read_lines(const std::string& path, const std::function<void(const std::string& line)>& take);
std::optional<int64_t> file_size(const std::string& path);
/// A path that leads up again (a/../b) without the part that it leaves, which need not be there.
std::string settle_path(const std::string& path);
/// The path from the root, without links as far as it exists, and without a slash at its end.
std::string real_path(const std::string& path);
/// Names of the files in a folder, sorted.
std::vector<std::string> list_folder(const std::string& folder);

/// Writes a whole file under a staged name, makes it durable and gives it its name.
void write_whole(FileLayer& files, const std::string& folder, const std::string& name, std::string_view text);

struct FileText {
  std::string name;
  std::optional<std::string> text;  ///< nothing: the file is to go
};

/// Writes files that belong together. Whatever stops it, those in the folder are all old ones or all new
/// ones; what is missing then comes with the next try. Files that are as they should be are left alone.
void write_together(FileLayer& files, const std::string& folder, const std::vector<FileText>& texts);

}  // namespace sheaf
