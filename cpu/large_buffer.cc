#include "cpu/large_buffer.h"

#include <algorithm>
#include <cstddef>
#include <mutex>
#include <sys/mman.h>
#include <unistd.h>
#include <utility>

#include "core/base/error.h"

namespace sheaf {
namespace {

constexpr int64_t kHugePage = 2 << 20;
constexpr double kBesidePool = 256 << 20;  // for a step, threads, and reading and writing

std::unique_ptr<void, MappedBytes> map_pages(int64_t bytes, const char* what) {
  bytes = (bytes + kHugePage - 1) / kHugePage * kHugePage;
  void* data =
      mmap(nullptr, static_cast<size_t>(bytes), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (data == MAP_FAILED)
    throw OutOfMemory(
        fmt::format("the system cannot provide the {1} MB that {0} needs; free memory, or raise the "
                    "limit (ulimit -v)",
                    what, bytes / 1000000));
  madvise(data, static_cast<size_t>(bytes), MADV_HUGEPAGE);
  return {data, MappedBytes{bytes, nullptr}};
}

/// Memory that buffers smaller than a huge page share. With small pages of their own, weights would be read
/// more slowly: at the end of each, the processor stops fetching ahead.
struct Chunk {
  std::unique_ptr<void, MappedBytes> memory;
  int64_t used = 0;
};

std::unique_ptr<void, MappedBytes> take_part(int64_t bytes, const char* what) {
  constexpr int64_t kChunk = 8 * kHugePage, kApart = 256;
  static std::mutex mutex;
  static std::weak_ptr<Chunk> last;
  bytes = (bytes + kApart - 1) / kApart * kApart;
  const std::lock_guard lock(mutex);
  std::shared_ptr<Chunk> chunk = last.lock();
  if (!chunk || chunk->used + bytes > kChunk) {
    chunk = std::make_shared<Chunk>(Chunk{.memory = map_pages(kChunk, what)});
    last = chunk;
  }
  void* data = static_cast<std::byte*>(chunk->memory.get()) + chunk->used;
  chunk->used += bytes;
  return {data, MappedBytes{bytes, std::move(chunk)}};
}

}  // namespace

int64_t machine_memory() {
  return int64_t{sysconf(_SC_PHYS_PAGES)} * sysconf(_SC_PAGESIZE);
}

void check_memory(int64_t bytes, const char* what) {
  if (bytes < 0 || bytes > machine_memory())
    throw OutOfMemory(fmt::format("{} needs {} MB, but this machine has {} MB", what, bytes / 1000000,
                                  machine_memory() / 1000000));
}

void check_pool(double bytes, bool made) {
  if (bytes > static_cast<double>(machine_memory()) * 7 / 8)
    throw OutOfMemory(
        fmt::format("the key/value pool needs {:.0f} MB, but this machine has {} MB; lower "
                    "engine.kv_memory_gb",
                    bytes / 1e6, machine_memory() / 1000000));
  if (!made) return;
  const auto beside = static_cast<size_t>(std::min(bytes, kBesidePool));
  void* room = mmap(nullptr, beside, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (room == MAP_FAILED)
    throw OutOfMemory(
        fmt::format("a key/value pool of {:.0f} MB leaves no address space for a step; raise "
                    "the limit (ulimit -v)",
                    bytes / 1e6));
  munmap(room, beside);
}

std::unique_ptr<void, MappedBytes> map_zeroed(int64_t bytes, const char* what) {
  check_memory(bytes, what);
  if (bytes == 0) return {};
  return bytes < kHugePage ? take_part(bytes, what) : map_pages(bytes, what);
}

void MappedBytes::operator()(void* data) const {
  if (!chunk) munmap(data, static_cast<size_t>(bytes));
}

}  // namespace sheaf
