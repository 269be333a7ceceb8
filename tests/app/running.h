#pragma once
#include <algorithm>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <functional>
#include <string>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

#include "tests/app/program.h"

namespace sheaf::test {

/// The program at work beside the test, killed where the test ends first.
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

  void send(int signal) const {
    if (!ended_) kill(child_, signal);
  }

  /// Its exit code, or 128 and the signal that ended it.
  int end() {
    wait(0);
    return WIFEXITED(status_) ? WEXITSTATUS(status_) : 128 + WTERMSIG(status_);
  }

  bool ended() { return wait(WNOHANG); }

  /// False where the program ends first, or after two minutes.
  bool wait_until(const std::function<bool()>& ready) {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::minutes(2);
    while (!ready()) {
      if (ended() || std::chrono::steady_clock::now() > deadline) return false;
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    return true;
  }

 private:
  bool wait(int how) {
    if (!ended_) ended_ = waitpid(child_, &status_, how) == child_;
    return ended_;
  }

  pid_t child_ = -1;
  int status_ = 0;
  bool ended_ = false;
};

/// Lines of a run folder's journal: its head, then one for every group of rows that is safe.
inline int64_t journal_lines(const std::string& folder) {
  const std::string journal = read_text(folder + "/journal");
  return std::count(journal.begin(), journal.end(), '\n');
}

}  // namespace sheaf::test
