// Preloaded by a test: a disk that is full after so many writes.
#include <cerrno>
#include <cstdlib>
#include <sys/syscall.h>
#include <unistd.h>

extern "C" ssize_t write(int file, const void* bytes, size_t size) {
  static const char* const most = std::getenv("SHEAF_TEST_WRITES");
  static int count = 0;
  if (file > 2 && most && ++count > std::atoi(most)) {
    errno = ENOSPC;
    return -1;
  }
  return syscall(SYS_write, file, bytes, size);
}
