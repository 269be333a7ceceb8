#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

namespace sheaf {

/// An open file of the operating system, closed with the object.
class Descriptor {
 public:
  explicit Descriptor(int number) : number_(number) {}
  Descriptor(Descriptor&& other) noexcept : number_(other.release()) {}
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  Descriptor& operator=(Descriptor&&) = delete;
  ~Descriptor();

  int number() const { return number_; }
  /// The caller closes it.
  int release() { return std::exchange(number_, -1); }

 private:
  int number_;
};

/// Opens a file with open(2)'s `flags`. Never waits, as the open of a named pipe would, and refuses whatever
/// is not a regular file. Where nothing can be opened the number is negative and errno says why.
Descriptor open_regular(const std::string& path, int flags);

/// Reads `size` bytes at a place of a file; fewer where it ends before. Negative on an error, of which errno
/// says why.
int64_t read_at(int file, int64_t at, char* to, int64_t size);

/// Refuses a file that could not be opened, as errno says why. `wanted`, such as "name a job file", says what
/// to do where there is no such file.
[[noreturn]] void refuse_unopened(const std::string& path, std::string_view wanted = {});

/// Refuses a file that is there and cannot be opened.
void check_readable(const std::string& path);

/// Refuses what is there and is not a regular file; says what it is instead.
void check_regular(const std::string& path);

}  // namespace sheaf
