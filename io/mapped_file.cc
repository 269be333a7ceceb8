#include "io/mapped_file.h"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/error.h"

namespace sheaf {
namespace {

class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  int get() const { return fd_; }

 private:
  int fd_;
};

}  // namespace

std::shared_ptr<const MappedFile> MappedFile::open(const std::string& path) {
  // Without O_NONBLOCK the open of a named pipe would wait for a writer.
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (file.get() < 0) refuse("{}: cannot open: {}", path, std::strerror(errno));
  struct stat info {};
  if (::fstat(file.get(), &info) != 0) refuse("{}: cannot read its size: {}", path, std::strerror(errno));
  if (S_ISDIR(info.st_mode)) refuse("{}: is a folder, a file is needed", path);
  if (!S_ISREG(info.st_mode)) refuse("{}: is not a regular file", path);
  const auto size = static_cast<size_t>(info.st_size);
  if (size == 0) return std::shared_ptr<const MappedFile>(new MappedFile(path, {}));
  void* memory = ::mmap(nullptr, size, PROT_READ, MAP_SHARED, file.get(), 0);
  if (memory == MAP_FAILED) fail("{}: cannot map {} bytes: {}", path, size, std::strerror(errno));
  return std::shared_ptr<const MappedFile>(
      new MappedFile(path, {static_cast<const std::byte*>(memory), size}));
}

MappedFile::~MappedFile() {
  if (!bytes_.empty()) ::munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
}

std::string shown(std::string_view name) {
  constexpr size_t longest = 120;
  std::string out = "\"";
  for (const char c : name.substr(0, longest)) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte >= 0x7f) {
      out += fmt::format("\\x{:02x}", byte);
    } else {
      out += c;
    }
  }
  out += name.size() > longest ? "…\"" : "\"";
  return out;
}

}  // namespace sheaf
