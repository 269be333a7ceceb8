#include "io/base/file_layer.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/error.h"
#include "io/base/descriptor.h"

namespace sheaf {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kGoOn = "rerun the same command to resume";

[[noreturn]] void fail_at(const std::string& path, const char* what, int error) {
  // What the path is wrong with does not go away by itself.
  if (error == ENOTDIR || error == ENAMETOOLONG || error == EISDIR || error == ELOOP)
    refuse("{}: sheaf cannot {} it: {}; choose another path", path, what, std::strerror(error));
  if (error == ENOSPC || error == EDQUOT)
    fail_for_now("{}: the disk is full; free some space and {}", path, kGoOn);
  // A network file system that is away, or a disk that failed on this machine only.
  if (error == EIO || error == ESTALE || error == ETIMEDOUT || error == EHOSTDOWN || error == ENOTCONN)
    fail_for_now("{}: sheaf cannot {} it: {}; fix that and {}", path, what, std::strerror(error), kGoOn);
  fail("{}: sheaf cannot {} it: {}; fix that and {}", path, what, std::strerror(error), kGoOn);
}

void sync_descriptor(int number, const std::string& path) {
  // What cannot be synced (EINVAL: a pipe, a device) has nothing to make durable.
  if (::fsync(number) != 0 && errno != EINVAL) fail_at(path, "sync", errno);
}

bool leads_to(const std::string& path, const Descriptor& file) {
  struct stat held {
  }, there{};
  return ::fstat(file.number(), &held) == 0 && ::stat(path.c_str(), &there) == 0 &&
         held.st_dev == there.st_dev && held.st_ino == there.st_ino;
}

class RealFile : public OutputFile {
 public:
  explicit RealFile(const std::string& path)
      : path_(path), file_(open_regular(path, O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW)) {
    if (file_.number() < 0) fail_at(path, "write", errno);
  }
  void append(std::string_view bytes) override {
    while (!bytes.empty()) {
      const ssize_t written = ::write(file_.number(), bytes.data(), bytes.size());
      if (written < 0 && errno == EINTR) continue;
      if (written < 0) fail_at(path_, "write", errno);
      bytes.remove_prefix(static_cast<size_t>(written));
    }
  }
  void truncate(int64_t size) override {
    if (::ftruncate(file_.number(), size) != 0) fail_at(path_, "shorten", errno);
  }
  void sync() override { sync_descriptor(file_.number(), path_); }
  bool is_at(const std::string& path) const override { return leads_to(path, file_); }

 private:
  std::string path_;
  Descriptor file_;
};

class RealLock : public FolderLock {
 public:
  explicit RealLock(const std::string& folder)
      : folder_(folder), path_(folder + "/.lock"), file_(open_regular(path_, O_RDWR | O_CREAT | O_NOFOLLOW)) {
    if (file_.number() < 0) fail_at(path_, "write", errno);
    if (read_beginning(path_, 32).value_or("").find_first_not_of("0123456789") != std::string::npos)
      refuse("{}: this is not a lock file of sheaf; remove it, or choose another folder", path_);
    if (::flock(file_.number(), LOCK_EX | LOCK_NB) != 0) {
      if (errno == EWOULDBLOCK) refuse_second();
      if (errno != ENOSYS && errno != ENOLCK && errno != EOPNOTSUPP && errno != EINVAL)
        fail_at(path_, "lock", errno);
      unlocked_ = true;
    }
    RealLock::check();
    const std::string pid = std::to_string(::getpid());
    // Only a message needs the number: the lock holds without it.
    if (::ftruncate(file_.number(), 0) != 0 || ::pwrite(file_.number(), pid.data(), pid.size(), 0) < 0)
      return;
  }

  void check() const override {
    if (leads_to(path_, file_)) return;
    refuse(
        "{}: the folder or its lock was deleted or replaced while this process was writing there; let only "
        "one process use the folder, and rerun the same command",
        folder_);
  }

  std::string notice() const override {
    if (!unlocked_) return {};
    return fmt::format("{}: the file system has no locks; make sure that no other process writes to it",
                       folder_);
  }

 private:
  [[noreturn]] void refuse_second() const {
    std::string holder = read_beginning(path_, 16).value_or("");
    if (holder.find_first_not_of("0123456789") != std::string::npos) holder.clear();
    fail_for_now("{}: another process is using this folder{}; wait for it, or choose another output.path",
                 folder_, holder.empty() ? "" : " (pid " + holder + ")");
  }

  std::string folder_, path_;
  Descriptor file_;
  bool unlocked_ = false;
};

class RealFiles : public FileLayer {
 public:
  std::unique_ptr<OutputFile> open(const std::string& path) override {
    return std::make_unique<RealFile>(path);
  }
  void rename(const std::string& from, const std::string& to) override {
    check_regular(to);  // a device of that name would be gone
    if (::rename(from.c_str(), to.c_str()) != 0) fail_at(from, ("rename to " + to).c_str(), errno);
  }
  void remove(const std::string& path) override {
    if (::unlink(path.c_str()) != 0 && errno != ENOENT) fail_at(path, "remove", errno);
  }
  void make_folder(const std::string& path) override {
    std::error_code error;
    if (fs::is_directory(path, error)) return;
    const fs::path parent = fs::path(path).parent_path();
    if (!parent.empty() && !fs::exists(parent, error)) make_folder(parent.string());
    fs::create_directory(path, error);
    if (error == std::errc::not_a_directory || error == std::errc::file_exists)
      refuse("{}: the folder cannot be created: a file of that name is in the way; choose another path",
             path);
    if (error == std::errc::no_such_file_or_directory)
      refuse("{}: the folder cannot be created here; choose another path", path);
    if (error) fail_at(path, "create", error.value());
    sync_folder(parent.empty() ? "." : parent.string());
  }
  void remove_folder(const std::string& path) override {
    if (::rmdir(path.c_str()) != 0 && errno != ENOENT) fail_at(path, "remove", errno);
  }
  bool exchange(const std::string& a, const std::string& b) override {
    if (::renameat2(AT_FDCWD, a.c_str(), AT_FDCWD, b.c_str(), RENAME_EXCHANGE) == 0) return true;
    if (errno != EINVAL && errno != ENOSYS && errno != EOPNOTSUPP)
      fail_at(a, ("exchange with " + b).c_str(), errno);
    return false;
  }
  void sync_folder(const std::string& path) override {
    const Descriptor folder(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (folder.number() < 0) fail_at(path, "open", errno);
    sync_descriptor(folder.number(), path);
  }
  std::unique_ptr<FolderLock> lock(const std::string& folder) override {
    return std::make_unique<RealLock>(folder);
  }
};

/// False where there is no such file. `take` says whether it wants more.
bool read_while(const std::string& path, size_t piece_size,
                const std::function<bool(std::string_view)>& take) {
  const Descriptor file = open_regular(path, O_RDONLY);
  if (file.number() < 0) {
    if (errno == ENOENT || errno == ENOTDIR) return false;
    fail_at(path, "read", errno);
  }
  std::vector<char> piece(piece_size);
  for (;;) {
    const ssize_t count = ::read(file.number(), piece.data(), piece.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) fail_at(path, "read", errno);
    if (count == 0 || !take(std::string_view(piece.data(), static_cast<size_t>(count)))) return true;
  }
}

std::string staged_path(const std::string& path) {
  return path + ".part";
}

/// Writes a whole file under a staged name and makes it durable.
void stage(FileLayer& files, const std::string& path, std::string_view text) {
  const auto file = files.open(staged_path(path));
  file->truncate(0);
  file->append(text);
  file->sync();
}

}  // namespace

FileLayer& real_files() {
  static RealFiles files;
  return files;
}

bool read_pieces(const std::string& path, const std::function<void(std::string_view)>& take) {
  return read_while(path, 1 << 20, [&](std::string_view piece) {
    take(piece);
    return true;
  });
}

void read_lines(const std::string& path, const std::function<void(const std::string& line)>& take) {
  std::string line;
  read_pieces(path, [&](std::string_view piece) {
    for (size_t end; (end = piece.find('\n')) != std::string_view::npos; piece.remove_prefix(end + 1)) {
      line += piece.substr(0, end);
      take(line);
      line.clear();
    }
    line += piece;
  });
}

std::optional<std::string> read_beginning(const std::string& path, size_t size) {
  std::string text;
  const bool there = read_while(path, size, [&](std::string_view piece) {
    text += piece.substr(0, size - text.size());
    return text.size() < size;
  });
  return there ? std::optional(text) : std::nullopt;
}

std::optional<std::string> read_whole(const std::string& path, int64_t most) {
  std::string text;
  const auto take = [&](std::string_view piece) {
    if (static_cast<int64_t>(text.size() + piece.size()) > most)
      refuse("{}: the file has more than {} MB; no file of this name should be that large", path, most >> 20);
    text += piece;
  };
  if (!read_pieces(path, take)) return std::nullopt;
  return text;
}

std::optional<int64_t> file_size(const std::string& path) {
  std::error_code error;
  const auto size = fs::file_size(path, error);
  return error ? std::nullopt : std::optional(static_cast<int64_t>(size));
}

std::string settle_path(const std::string& path) {
  const fs::path given(path);
  if (std::find(given.begin(), given.end(), "..") == given.end()) return path;
  std::error_code ignored;
  const fs::path settled = fs::weakly_canonical(given, ignored);
  return settled.empty() ? path : settled.string();
}

std::string real_path(const std::string& path) {
  std::error_code ignored;
  const fs::path real = fs::weakly_canonical(fs::absolute(path, ignored), ignored);
  if (real.empty()) return path;
  return (real.has_filename() ? real : real.parent_path()).string();
}

std::vector<std::string> list_folder(const std::string& folder) {
  std::vector<std::string> names;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error)) names.push_back(entry.path().filename());
  std::sort(names.begin(), names.end());
  return names;
}

void write_whole(FileLayer& files, const std::string& folder, const std::string& name,
                 std::string_view text) {
  const std::string path = folder + "/" + name;
  stage(files, path, text);
  files.rename(staged_path(path), path);
  files.sync_folder(folder);
}

void write_together(FileLayer& files, const std::string& folder, const std::vector<FileText>& texts) {
  const auto path = [&](const FileText& file) { return folder + "/" + file.name; };
  if (std::ranges::all_of(texts, [&](const FileText& file) { return read_whole(path(file)) == file.text; }))
    return;
  for (const FileText& file : texts)
    if (file.text) stage(files, path(file), *file.text);
  for (const FileText& file : texts) files.remove(path(file));
  files.sync_folder(folder);  // no old one comes back beside a new one
  for (const FileText& file : texts)
    if (file.text) files.rename(staged_path(path(file)), path(file));
  files.sync_folder(folder);
}

}  // namespace sheaf
