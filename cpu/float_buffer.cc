#include "cpu/float_buffer.h"

#include <limits>
#include <sys/mman.h>
#include <unistd.h>

#include "core/error.h"

namespace sheaf {
namespace {

constexpr int64_t kHugePage = 2 << 20;

}  // namespace

void check_memory(int64_t floats, const char* what) {
  const int64_t memory = int64_t{sysconf(_SC_PHYS_PAGES)} * sysconf(_SC_PAGESIZE);
  if (floats < 0 || floats > memory / int64_t{sizeof(float)})
    fail("{} needs {} MB, this machine has {} MB", what, floats / 250000, memory / 1000000);
}

FloatBuffer::FloatBuffer(int64_t count, const char* what) : count_(count) {
  check_memory(count, what);
  if (count == 0) return;
  int64_t bytes = count * int64_t{sizeof(float)};
  if (bytes >= kHugePage) bytes = (bytes + kHugePage - 1) / kHugePage * kHugePage;
  void* data =
      mmap(nullptr, static_cast<size_t>(bytes), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (data == MAP_FAILED) fail("{} needs {} MB, which the machine refuses", what, bytes / 1000000);
  if (bytes >= kHugePage) madvise(data, static_cast<size_t>(bytes), MADV_HUGEPAGE);
  data_ = std::unique_ptr<float[], Release>(static_cast<float*>(data), Release{bytes});
}

void FloatBuffer::Release::operator()(float* data) const {
  munmap(data, static_cast<size_t>(bytes));
}

}  // namespace sheaf
