#pragma once
#include <arrow/result.h>
#include <arrow/status.h>
#include <chrono>
#include <string>

namespace sheaf {

/// Whether asking a store again may help: it cannot be reached, is overloaded or broke off, and did not
/// refuse.
bool may_pass(const arrow::Status& status);

/// Remembers why a file of a store could not be read, which readers of its format would take for damage.
void mark_unread(const std::string& uri, const arrow::Status& status);
/// For a file that is opened again.
void forget_unread(const std::string& uri);
/// Throws where it was; the work cannot continue as if only some records were bad.
void check_read(const std::string& uri);

/// Waits before the next attempt, longer each time; false where it is not worth one: the patience is over, or
/// the work is to stop.
class StorePause {
 public:
  bool wait(const arrow::Status& why);

 private:
  using Clock = std::chrono::steady_clock;
  const Clock::time_point begun_ = Clock::now();
  double seconds_ = 0.2;
  double told_at_ = 0;  ///< seconds after it began
};

inline const arrow::Status& status_of(const arrow::Status& status) {
  return status;
}
template <class Value>
const arrow::Status& status_of(const arrow::Result<Value>& result) {
  return result.status();
}

/// Asks until there is an answer, a refusal, or no patience left. The SDKs retry too, for a few seconds.
template <class Ask>
auto ask_store(Ask&& ask) {
  StorePause pause;
  for (;;) {
    auto answer = ask();
    if (status_of(answer).ok() || !may_pass(status_of(answer)) || !pause.wait(status_of(answer)))
      return answer;
  }
}

}  // namespace sheaf
