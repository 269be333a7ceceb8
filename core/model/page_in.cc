#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <sys/mman.h>
#include <unistd.h>

#include "core/base/error.h"
#include "core/model/model.h"

namespace sheaf {
namespace {

constexpr int kPopulateRead = 22;  // MADV_POPULATE_READ, which older headers lack

/// The file that is mapped at an address, for a message. A line reads "from-to rights offset device inode
/// path".
std::string file_mapped_at(const std::byte* address) {
  std::ifstream maps("/proc/self/maps");
  const auto wanted = reinterpret_cast<uintptr_t>(address);
  for (std::string line; std::getline(maps, line);) {
    char* end = nullptr;
    const uintptr_t from = std::strtoull(line.c_str(), &end, 16);
    if (*end != '-' || wanted < from || wanted >= std::strtoull(end + 1, nullptr, 16)) continue;
    const size_t path = line.find('/');
    return path == std::string::npos ? "memory" : line.substr(path);
  }
  return "memory that is not mapped";
}

/// Brings bytes of a mapped file into memory. Where they cannot be read it fails with the name of the file
/// and of the `tensor`.
void page_in_bytes(const std::byte* begin, int64_t bytes, const std::string& tensor) {
  const auto page = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
  const uintptr_t before = reinterpret_cast<uintptr_t>(begin) % page;
  void* start = const_cast<std::byte*>(begin - before);
  if (madvise(start, static_cast<size_t>(bytes) + before, kPopulateRead) == 0) return;
  if (errno == EINVAL) return;  // a kernel before 5.14: the pages come one by one when they are read
  if (errno == EFAULT)
    fail("{}: tensor {} cannot be read; the file was cut short or its disk failed", file_mapped_at(begin),
         tensor);
  fail("{}: tensor {} cannot be read: {}", file_mapped_at(begin), tensor, std::strerror(errno));
}

}  // namespace

void Matrix::page_in(int64_t first, int64_t count) const {
  if (rope_head_dim != 0) {
    // The rows of a head lie in another order: take whole heads.
    count += first % rope_head_dim;
    first -= first % rope_head_dim;
    count = (count + rope_head_dim - 1) / rope_head_dim * rope_head_dim;
  }
  if (source) {
    const int64_t row = source->row_bytes;
    return page_in_bytes(source->data + first * row, row > 0 ? count * row : source->bytes, source->tensor);
  }
  page_in_bytes(data + first * row_bytes(), count * row_bytes(), name);
}

}  // namespace sheaf
