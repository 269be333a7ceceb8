#include "io/base/descriptor.h"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/error.h"
#include "io/base/paths.h"

namespace sheaf {
namespace {

void check_kind(const std::string& path, mode_t mode) {
  if (S_ISREG(mode)) return;
  refuse("{}: this is {}, not a regular file; name a regular file", path,
         S_ISDIR(mode)    ? "a folder"
         : S_ISFIFO(mode) ? "a named pipe"
         : S_ISSOCK(mode) ? "a socket"
                          : "a device");
}

}  // namespace

Descriptor::~Descriptor() {
  if (number_ >= 0) ::close(number_);
}

Descriptor open_regular(const std::string& path, int flags) {
  Descriptor file(::open(path.c_str(), flags | O_CLOEXEC | O_NONBLOCK | O_NOCTTY, 0666));
  struct stat about {};
  if (file.number() < 0) {
    // What open() itself refuses, such as a pipe to write that nobody reads or a socket, is named all the
    // same.
    const int error = errno;
    if (error == ELOOP && ::lstat(path.c_str(), &about) == 0 && S_ISLNK(about.st_mode))
      refuse("{}: this is a link; sheaf writes only real files in this folder; remove the link", path);
    if (error != ENOENT && ::stat(path.c_str(), &about) == 0) check_kind(path, about.st_mode);
    errno = error;
    return file;
  }
  if (::fstat(file.number(), &about) != 0)
    refuse("{}: the file cannot be read: {}", path, std::strerror(errno));
  check_kind(path, about.st_mode);
  return file;
}

int64_t read_at(int file, int64_t at, char* to, int64_t size) {
  int64_t done = 0;
  while (done < size) {
    const ssize_t count = ::pread(file, to + done, static_cast<size_t>(size - done), at + done);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return -1;
    if (count == 0) break;
    done += count;
  }
  return done;
}

void refuse_unopened(const std::string& path, std::string_view wanted) {
  if (errno != ENOENT) refuse("{}: the file cannot be read: {}", path, std::strerror(errno));
  const std::string own = path.starts_with('/') ? "" : find_installed_file(path);
  refuse("{}: no such file{}{}{}{}", path, wanted.empty() ? "" : "; ", wanted,
         own.empty() ? "" : "; sheaf's own is ", own);
}

void check_readable(const std::string& path) {
  if (open_regular(path, O_RDONLY).number() < 0 && errno != ENOENT && errno != ENOTDIR) refuse_unopened(path);
}

void check_regular(const std::string& path) {
  struct stat about {};
  if (::stat(path.c_str(), &about) == 0) check_kind(path, about.st_mode);
}

}  // namespace sheaf
