#pragma once
#include <cstddef>
#include <memory>
#include <string>

namespace sheaf {

/// The bytes of a file from front to back, decompressed where its name ends in .gz or .zst.
class ByteSource {
 public:
  virtual ~ByteSource() = default;
  /// Reads up to `size` bytes; 0 at the end. Throws an Error that names the file.
  virtual size_t read(char* target, size_t size) = 0;
};

std::unique_ptr<ByteSource> open_bytes(const std::string& path);

}  // namespace sheaf
