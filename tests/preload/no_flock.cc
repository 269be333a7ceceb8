// Preloaded by a test: a file system without locks.
#include <cerrno>

extern "C" int flock(int /*file*/, int /*operation*/) {
  errno = ENOLCK;
  return -1;
}
