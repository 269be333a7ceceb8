#include "io/base/store_retry.h"

#include <algorithm>
#include <cstdlib>
#include <mutex>
#include <thread>

#include "core/base/interrupted.h"
#include "core/text/printable.h"
#include "core/text/spelling.h"
#include "io/base/store.h"

namespace sheaf {
namespace {

constexpr double kQuiet = 1, kAgain = 60;  // seconds
std::atomic<void (*)(std::string_view)> told = nullptr;

std::mutex unread_mutex;
std::map<std::string, arrow::Status> unread;  // why, by URI

/// Without what stands in quotes: the names of buckets and objects, which may hold any word.
std::string without_names(const std::string& text) {
  std::string rest;
  bool quoted = false;
  for (const char c : text) {
    if (c == '\'') quoted = !quoted;
    if (!quoted) rest += c;
  }
  return rest;
}

/// How long a store that cannot be reached is asked again: SHEAF_STORE_SECONDS, 300 by default.
double store_patience() {
  const char* seconds = std::getenv("SHEAF_STORE_SECONDS");
  if (!seconds) return 300;
  char* end = nullptr;
  const double patience = std::strtod(seconds, &end);
  if (end == seconds || *end != '\0' || !(patience >= 0))
    refuse("SHEAF_STORE_SECONDS must be a number of seconds such as 300, not \"{}\"",
           printable_line(seconds));
  return patience;
}

}  // namespace

bool may_pass(const arrow::Status& status) {
  if (!status.IsIOError() && !status.IsUnknownError()) return false;
  const std::string text = without_names(status.ToString());
  for (const std::string_view refusal :
       {"ACCESS_DENIED",        "NO_SUCH_BUCKET",  "NO_SUCH_KEY",     "RESOURCE_NOT_FOUND",
        "INVALID_ACCESS_KEY",   "SIGNATURE",       "AUTHENTICATION",  "EXPIRED_TOKEN",
        "HTTP status 400",      "HTTP status 401", "HTTP status 403", "HTTP status 404",
        "PERMISSION_DENIED",    "UNAUTHENTICATED", "NOT_FOUND",       "Authentication",
        "AuthorizationFailure", "No such file",    "became shorter",  "credential",
        "OAuth2 access token"})
    if (text.find(refusal) != std::string::npos) return false;
  return true;
}

void mark_unread(const std::string& uri, const arrow::Status& status) {
  const std::lock_guard lock(unread_mutex);
  unread.insert_or_assign(uri, status);
}

void forget_unread(const std::string& uri) {
  const std::lock_guard lock(unread_mutex);
  unread.erase(uri);
}

void check_read(const std::string& uri) {
  const std::lock_guard lock(unread_mutex);
  const auto why = unread.find(uri);
  if (why == unread.end()) return;
  const std::string text = fmt::format("{}: the file cannot be read: {}", uri,
                                       shorten_text(printable_line(why->second.message()), 300));
  if (may_pass(why->second)) throw StoreUnreachable(text + "; rerun the same command to resume");
  refuse("{}; check that it has not changed and that you may read it, then rerun the same command", text);
}

void tell_of_waiting(void (*tell)(std::string_view text)) {
  told = tell;
}

bool StorePause::wait(const arrow::Status& why) {
  const double waited = std::chrono::duration<double>(Clock::now() - begun_).count();
  const double left = store_patience() - waited;
  if (left <= 0) return false;
  if (auto* const tell = told.load(); tell && waited >= (told_at_ == 0 ? kQuiet : told_at_ + kAgain)) {
    told_at_ = waited;
    tell(fmt::format("the store does not answer: {}; asking again for {:.0f} more seconds",
                     shorten_text(printable_line(why.message()), 200), left));
  }
  // Machines that lost a store together should not come back together.
  const double jitter = 1 + 0.25 * static_cast<double>(Clock::now().time_since_epoch().count() % 1000) / 1000;
  const auto end = Clock::now() + std::chrono::duration_cast<Clock::duration>(
                                      std::chrono::duration<double>(std::min(left, seconds_ * jitter)));
  while (Clock::now() < end) {
    if (*own_stop) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
  seconds_ = std::min(seconds_ * 2, 15.0);
  return true;
}

}  // namespace sheaf
