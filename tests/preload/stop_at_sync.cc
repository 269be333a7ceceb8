// Preloaded by a test: the program stops (SIGSTOP) once it has synced a file so often, so that a test meets
// it there however the machine is loaded. SHEAF_TEST_SYNCS: how often; SHEAF_TEST_FILE: the end of the file's
// path, or empty for any file.
#include <atomic>
#include <csignal>
#include <cstdlib>
#include <string>
#include <string_view>
#include <sys/syscall.h>
#include <unistd.h>

namespace {

bool is_meant(int file) {
  const char* const end = std::getenv("SHEAF_TEST_FILE");
  char path[4096];
  const ssize_t size = readlink(("/proc/self/fd/" + std::to_string(file)).c_str(), path, sizeof path);
  return size > 0 && std::string_view(path, static_cast<size_t>(size)).ends_with(end ? end : "");
}

}  // namespace

extern "C" int fsync(int file) {
  static const char* const stop_at = std::getenv("SHEAF_TEST_SYNCS");
  static std::atomic<int> syncs = 0;
  const int result = static_cast<int>(syscall(SYS_fsync, file));
  if (stop_at && is_meant(file) && ++syncs == std::atoi(stop_at)) kill(getpid(), SIGSTOP);
  return result;
}
