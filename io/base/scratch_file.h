#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace sheaf {

/// A file without a name, for what is too large for memory; it is gone with the object, or with the process
/// however that ends.
class ScratchFile {
 public:
  /// In the nearest folder above `near` that exists (where the output goes there should be room), or in the
  /// folder for temporary files where nothing can be written there, or `near` is empty.
  explicit ScratchFile(const std::string& near);
  ~ScratchFile();
  ScratchFile(const ScratchFile&) = delete;
  ScratchFile& operator=(const ScratchFile&) = delete;

  void append(std::string_view bytes);
  int64_t size() const { return size_; }
  std::string read(int64_t at, int64_t size) const;
  /// How many bytes were read; negative on an error.
  int64_t read(int64_t at, int64_t size, char* to) const;
  /// Makes it `size` bytes large, new ones zero, and maps it to be written; the mapping before is gone.
  std::span<std::byte> map(int64_t size);
  /// A path under which this process can open it.
  std::string path() const;

 private:
  int file_ = -1;
  int64_t size_ = 0;
  std::span<std::byte> mapped_;
};

}  // namespace sheaf
