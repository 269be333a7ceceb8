#include "io/base/mapped_file.h"

#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <mutex>
#include <sys/mman.h>
#include <sys/stat.h>

#include "core/base/error.h"
#include "core/text/printable.h"
#include "core/text/utf8.h"
#include "io/base/descriptor.h"

namespace sheaf {
namespace {

/// What is mapped where, for a signal handler: a few models have all the files there are.
struct Mapping {
  std::atomic<const std::byte*> begin = nullptr;
  std::atomic<size_t> size = 0;
  char path[400] = {};
};
std::array<Mapping, 256> mappings;
std::mutex mappings_mutex;

void remember(std::span<const std::byte> bytes, const std::string& path) {
  const std::lock_guard lock(mappings_mutex);
  for (Mapping& mapping : mappings) {
    if (mapping.begin != nullptr) continue;
    const std::string name = printable_line(path).substr(0, sizeof mapping.path - 1);
    mapping.path[name.copy(mapping.path, sizeof mapping.path - 1)] = '\0';
    mapping.size = bytes.size();
    mapping.begin = bytes.data();
    return;
  }
}

void forget(const std::byte* begin) {
  const std::lock_guard lock(mappings_mutex);
  for (Mapping& mapping : mappings)
    if (mapping.begin == begin) mapping.begin = nullptr;
}

}  // namespace

const char* mapped_file_at(const void* address) {
  const auto* at = static_cast<const std::byte*>(address);
  for (const Mapping& mapping : mappings) {
    const std::byte* begin = mapping.begin;
    if (begin != nullptr && at >= begin && at < begin + mapping.size) return mapping.path;
  }
  return "a file";
}

std::shared_ptr<const MappedFile> MappedFile::open(const std::string& path) {
  const Descriptor file = open_regular(path, O_RDONLY);
  if (file.number() < 0) refuse_unopened(path);
  struct stat info {};
  if (::fstat(file.number(), &info) != 0)
    refuse("{}: its size cannot be read: {}", path, std::strerror(errno));
  const auto size = static_cast<size_t>(info.st_size);
  if (size == 0) return std::shared_ptr<const MappedFile>(new MappedFile(path, {}));
  void* memory = ::mmap(nullptr, size, PROT_READ, MAP_SHARED, file.number(), 0);
  if (memory == MAP_FAILED) fail("{}: {} bytes cannot be mapped: {}", path, size, std::strerror(errno));
  const std::span<const std::byte> bytes(static_cast<const std::byte*>(memory), size);
  remember(bytes, path);
  return std::shared_ptr<const MappedFile>(new MappedFile(path, bytes));
}

MappedFile::~MappedFile() {
  if (bytes_.empty()) return;
  forget(bytes_.data());
  ::munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
}

std::string shown(std::string_view name) {
  constexpr size_t longest = 120;
  // Of a character that does not fit nothing is shown.
  size_t fit = std::min(name.size(), longest);
  while (fit > 0 && fit < name.size() && inside_character(name[fit])) --fit;
  return fmt::format("\"{}{}\"", printable_line(name.substr(0, fit)), fit < name.size() ? "…" : "");
}

}  // namespace sheaf
