#pragma once
#include <fmt/format.h>
#include <stdexcept>
#include <string>

namespace sheaf {

/// What went wrong decides the exit code; the message names the thing and the fix.
enum class Fault : int {
  input = 2,   ///< usage, configuration, model or corpus wrong: the user can mend it
  fatal = 3,   ///< the machine or sheaf itself failed: out of memory, a folder not writable, a bug
  retry = 75,  ///< the machine failed in a way that may pass: disk full, device lost (sysexits' EX_TEMPFAIL)
};

class Error : public std::runtime_error {
 public:
  Error(Fault fault, const std::string& message) : std::runtime_error(message), fault_(fault) {}
  Fault fault() const { return fault_; }

 private:
  Fault fault_;
};

/// Memory that was asked for cannot be had; less of it may do.
class OutOfMemory : public Error {
 public:
  explicit OutOfMemory(const std::string& message, Fault fault = Fault::fatal) : Error(fault, message) {}
};

/// A record, a line or a reply that cannot be used: what is wrong with it, without its place. Whoever reads
/// on knows the place and whether it matters.
class BadText : public std::runtime_error {
 public:
  explicit BadText(const std::string& why) : std::runtime_error(why), reason(why) {}
  std::string reason;  ///< whole, also where it quotes a text with a NUL, at which what() ends
};

/// Throws a BadText: reject("column \"{}\" is missing", name).
template <class... Args>
[[noreturn]] void reject(fmt::format_string<Args...> format, Args&&... args) {
  throw BadText(fmt::format(format, std::forward<Args>(args)...));
}

/// Throws an input error: refuse("{}: tensor {} ends past the file", path, name).
template <class... Args>
[[noreturn]] void refuse(fmt::format_string<Args...> format, Args&&... args) {
  throw Error(Fault::input, fmt::format(format, std::forward<Args>(args)...));
}

/// Throws a fatal error.
template <class... Args>
[[noreturn]] void fail(fmt::format_string<Args...> format, Args&&... args) {
  throw Error(Fault::fatal, fmt::format(format, std::forward<Args>(args)...));
}

/// Throws an error of something that may succeed on retry.
template <class... Args>
[[noreturn]] void fail_for_now(fmt::format_string<Args...> format, Args&&... args) {
  throw Error(Fault::retry, fmt::format(format, std::forward<Args>(args)...));
}

}  // namespace sheaf
