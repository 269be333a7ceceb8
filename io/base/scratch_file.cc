#include "io/base/scratch_file.h"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <sys/mman.h>
#include <unistd.h>

#include "core/base/error.h"
#include "io/base/descriptor.h"

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

ScratchFile::ScratchFile(const std::string& near)
    : file_(near.empty() ? -1 : open_unnamed(nearest_folder(near))) {
  if (file_ >= 0) return;
  std::error_code trouble;
  const fs::path folder = fs::temp_directory_path(trouble);
  if (trouble) refuse("TMPDIR: the folder for temporary files is not there; make it, or name another one");
  file_ = open_unnamed(folder);
  if (file_ < 0) fail("{}: no temporary file can be created: {}", folder.string(), std::strerror(errno));
}

ScratchFile::~ScratchFile() {
  if (!mapped_.empty()) ::munmap(mapped_.data(), mapped_.size());
  ::close(file_);
}

void ScratchFile::append(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t count = ::pwrite(file_, bytes.data(), bytes.size(), size_);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) fail_for_now("a temporary file cannot be written: {}", std::strerror(errno));
    size_ += count;
    bytes.remove_prefix(static_cast<size_t>(count));
  }
}

std::string ScratchFile::read(int64_t at, int64_t size) const {
  std::string bytes(static_cast<size_t>(size), '\0');
  const int64_t count = read_at(file_, at, bytes.data(), size);
  if (count < size)
    fail("a temporary file cannot be read: {}", count < 0 ? std::strerror(errno) : "too short");
  return bytes;
}

int64_t ScratchFile::read(int64_t at, int64_t size, char* to) const {
  return read_at(file_, at, to, size);
}

std::span<std::byte> ScratchFile::map(int64_t size) {
  if (!mapped_.empty()) ::munmap(mapped_.data(), mapped_.size());
  mapped_ = {};
  // The disk is asked for the room now: a page without it would end the process when it is written.
  const int error = ::posix_fallocate(file_, 0, size);
  if (error != 0)
    fail_for_now(
        "a temporary file of {} bytes cannot be made: {}; make room for it, then rerun the same command",
        size, std::strerror(error));
  void* at = ::mmap(nullptr, static_cast<size_t>(size), PROT_READ | PROT_WRITE, MAP_SHARED, file_, 0);
  if (at == MAP_FAILED) fail("a temporary file cannot be mapped: {}", std::strerror(errno));
  size_ = size;
  mapped_ = {static_cast<std::byte*>(at), static_cast<size_t>(size)};
  return mapped_;
}

std::string ScratchFile::path() const {
  return "/proc/self/fd/" + std::to_string(file_);
}

}  // namespace sheaf
