#include "io/mapped_file.h"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "core/error.h"
#include "io/descriptor.h"

namespace sheaf {

std::shared_ptr<const MappedFile> MappedFile::open(const std::string& path) {
  const Descriptor file = open_regular(path, O_RDONLY);
  if (file.number() < 0) refuse("{}: cannot open: {}", path, std::strerror(errno));
  struct stat info {};
  if (::fstat(file.number(), &info) != 0) refuse("{}: cannot read its size: {}", path, std::strerror(errno));
  const auto size = static_cast<size_t>(info.st_size);
  if (size == 0) return std::shared_ptr<const MappedFile>(new MappedFile(path, {}));
  void* memory = ::mmap(nullptr, size, PROT_READ, MAP_SHARED, file.number(), 0);
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
