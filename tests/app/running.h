#pragma once
#include <algorithm>
#include <csignal>
#include <filesystem>
#include <fmt/format.h>
#include <string>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/app/program.h"

namespace sheaf::test {

/// For Running: the program stops itself once it has synced a file so often. The file: the end of its path.
inline std::string stop_at_sync(int64_t syncs, const std::string& file) {
  return fmt::format(
      "export ASAN_OPTIONS=\"$ASAN_OPTIONS:verify_asan_link_order=0\" LD_PRELOAD={} SHEAF_TEST_SYNCS={} "
      "SHEAF_TEST_FILE={}; ",
      SHEAF_STOP_AT_SYNC, syncs, file);
}

/// ... once so many groups of rows are safe: each gives the journal a line, which is synced.
inline std::string stop_at_group(int64_t groups) {
  return stop_at_sync(groups, "/journal");
}

/// The program at work beside the test, killed where the test ends first. A test that meets it in the middle
/// of its work lets it stop there: watching it from outside would be too late where the machine is busy.
class Running {
 public:
  /// `sheaf ARGUMENTS` through the shell, from the project's root. `before`: what the shell does first.
  explicit Running(const std::string& arguments, const std::string& before = "") {
    const std::string line = before + "exec " + SHEAF_BINARY + " " + arguments;
    child_ = fork();
    if (child_ == 0) {
      for (const int number : {SIGINT, SIGHUP}) std::signal(number, SIG_DFL);  // a shell may ignore them
      execl("/bin/sh", "sh", "-c", line.c_str(), nullptr);
      _exit(127);
    }
  }
  ~Running() {
    send(SIGKILL);
    end();
  }
  Running(const Running&) = delete;
  Running& operator=(const Running&) = delete;

  /// Waits until it has stopped where it was told to; false where it ended before.
  bool stopped() {
    if (!ended_ && waitpid(child_, &status_, WUNTRACED) == child_) ended_ = !WIFSTOPPED(status_);
    return !ended_;
  }

  /// Where it has stopped, it gets the signal when it continues.
  void send(int signal) const {
    if (!ended_) kill(child_, signal);
  }

  /// Lets it continue. Its exit code, or 128 and the signal that ended it.
  int end() {
    send(SIGCONT);
    if (!ended_) ended_ = waitpid(child_, &status_, 0) == child_;
    return exit_code_of(status_);
  }

 private:
  pid_t child_ = -1;
  int status_ = 0;
  bool ended_ = false;
};

}  // namespace sheaf::test
