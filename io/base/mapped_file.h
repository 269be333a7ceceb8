#pragma once
#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace sheaf {

/// A whole file mapped read-only. The file must not be cut short while it is mapped.
class MappedFile {
 public:
  /// Refuses what is not a readable regular file.
  static std::shared_ptr<const MappedFile> open(const std::string& path);

  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;
  ~MappedFile();

  std::span<const std::byte> bytes() const { return bytes_; }
  std::string_view text() const { return {reinterpret_cast<const char*>(bytes_.data()), bytes_.size()}; }
  const std::string& path() const { return path_; }

 private:
  MappedFile(std::string path, std::span<const std::byte> bytes) : path_(std::move(path)), bytes_(bytes) {}

  std::string path_;
  std::span<const std::byte> bytes_;
};

/// The path of the file that is mapped at an address, fit for a terminal; a signal handler may ask.
const char* mapped_file_at(const void* address);

/// A name out of an untrusted file, fit for a message: quoted, shortened, anything unprintable as \xNN.
std::string shown(std::string_view name);

}  // namespace sheaf
