#include "io/corpus/standard_input.h"

#include <cerrno>
#include <cstring>
#include <poll.h>
#include <unistd.h>

#include "core/base/error.h"
#include "io/base/sha256.h"

namespace sheaf {
namespace {

constexpr int kBetweenLooks = 100;  // milliseconds

}  // namespace

std::unique_ptr<ScratchFile> copy_standard_input(Job& job, const std::atomic<bool>& stop) {
  auto copy = std::make_unique<ScratchFile>(job.output.path);
  Sha256 sum;
  std::string buffer(1 << 20, '\0');
  for (;;) {
    // Reading alone would go on after a signal; waiting does not. A signal may come just before the wait,
    // which therefore ends by itself.
    pollfd input{STDIN_FILENO, POLLIN, 0};
    const int ready = ::poll(&input, 1, kBetweenLooks);
    if (stop) return nullptr;
    if (ready == 0 || (ready < 0 && errno == EINTR)) continue;
    const ssize_t count = ::read(STDIN_FILENO, buffer.data(), buffer.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0 && errno == EBADF)
      refuse("input.path: \"-\": standard input is closed; give the corpus there");
    if (count < 0) fail("standard input cannot be read: {}", std::strerror(errno));
    if (count == 0) break;
    const std::string_view bytes(buffer.data(), static_cast<size_t>(count));
    copy->append(bytes);
    sum.add(bytes);
  }
  job.input.standard_input = {copy->path(), copy->size(), sum.hex()};
  return copy;
}

}  // namespace sheaf
