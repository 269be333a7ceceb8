#include "app/signals.h"

#include <atomic>
#include <csignal>
#include <sys/resource.h>
#include <unistd.h>

#include "app/terminal.h"
#include "core/base/error.h"
#include "core/base/interrupted.h"
#include "io/base/mapped_file.h"

namespace sheaf {

namespace {

std::atomic<bool> in_order = false;

extern "C" void take_signal(int /*number*/) {
  if (!in_order || interrupted.exchange(true)) ::_exit(130);
}

/// A file that is mapped was cut short by somebody: what is read of it is gone.
extern "C" void take_bus_error(int /*number*/, siginfo_t* about, void* /*context*/) {
  print_in_signal("sheaf: ");
  print_in_signal(mapped_file_at(about->si_addr));
  print_in_signal(
      ": the file was cut short while sheaf was reading it; restore it and rerun the same command to "
      "resume\n");
  ::_exit(static_cast<int>(Fault::fatal));
}

}  // namespace

void set_up_signals() {
  struct sigaction bus {};
  bus.sa_sigaction = take_bus_error;
  bus.sa_flags = SA_SIGINFO;
  ::sigaction(SIGBUS, &bus, nullptr);
  std::signal(SIGXFSZ, SIG_IGN);
  std::signal(SIGTERM, take_signal);
  // Whoever starts a program with one of these ignored, as nohup does, wants it to keep running.
  for (const int number : {SIGINT, SIGHUP})
    if (std::signal(number, take_signal) == SIG_IGN) std::signal(number, SIG_IGN);
}

void check_stack() {
  rlimit limit{};
  constexpr rlim_t least = 1 << 20;
  if (::getrlimit(RLIMIT_STACK, &limit) == 0 && limit.rlim_cur < least)
    refuse("the stack is limited to {} KB; raise the limit: ulimit -s 8192", limit.rlim_cur >> 10);
}

void stop_in_order() {
  in_order = true;
}

void outlive_readers() {
  std::signal(SIGPIPE, SIG_IGN);
}

}  // namespace sheaf
