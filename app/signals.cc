#include "app/signals.h"

#include <csignal>
#include <initializer_list>
#include <unistd.h>

namespace sheaf {

std::atomic<bool> interrupted = false;

namespace {

std::atomic<bool> in_order = false;

extern "C" void take_signal(int /*number*/) {
  if (!in_order || interrupted.exchange(true)) ::_exit(130);
}

}  // namespace

void set_up_signals() {
  std::signal(SIGXFSZ, SIG_IGN);
  std::signal(SIGTERM, take_signal);
  // Whoever starts a program with one of these ignored, as nohup does, wants it to go on.
  for (const int number : {SIGINT, SIGHUP})
    if (std::signal(number, take_signal) == SIG_IGN) std::signal(number, SIG_IGN);
}

void stop_in_order() {
  in_order = true;
}

void outlive_readers() {
  std::signal(SIGPIPE, SIG_IGN);
}

}  // namespace sheaf
