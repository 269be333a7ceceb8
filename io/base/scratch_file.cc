#include "io/base/scratch_file.h"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <unistd.h>

#include "core/base/error.h"

namespace sheaf {
namespace {

namespace fs = std::filesystem;

int open_unnamed(const fs::path& folder) {
  std::string name = (folder / ".sheaf-scratch-XXXXXX").string();
  const int file = ::mkostemp(name.data(), O_CLOEXEC);
  if (file >= 0) ::unlink(name.c_str());
  return file;
}

fs::path nearest_folder(const std::string& near) {
  std::error_code ignored;
  fs::path folder = fs::absolute(near, ignored);
  while (!fs::is_directory(folder, ignored) && folder.has_relative_path()) folder = folder.parent_path();
  return folder;
}

}  // namespace

ScratchFile::ScratchFile(const std::string& near) : file_(open_unnamed(nearest_folder(near))) {
  if (file_ >= 0) return;
  const fs::path folder = fs::temp_directory_path();
  file_ = open_unnamed(folder);
  if (file_ < 0) fail("{}: no temporary file can be created: {}", folder.string(), std::strerror(errno));
}

ScratchFile::~ScratchFile() {
  ::close(file_);
}

void ScratchFile::append(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t count = ::pwrite(file_, bytes.data(), bytes.size(), size_);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) fail("a temporary file cannot be written: {}", std::strerror(errno));
    size_ += count;
    bytes.remove_prefix(static_cast<size_t>(count));
  }
}

std::string ScratchFile::read(int64_t at, int64_t size) const {
  std::string bytes(static_cast<size_t>(size), '\0');
  for (int64_t done = 0; done < size;) {
    const ssize_t count = ::pread(file_, bytes.data() + done, static_cast<size_t>(size - done), at + done);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0)
      fail("a temporary file cannot be read: {}", count < 0 ? std::strerror(errno) : "too short");
    done += count;
  }
  return bytes;
}

std::string ScratchFile::path() const {
  return "/proc/self/fd/" + std::to_string(file_);
}

}  // namespace sheaf
