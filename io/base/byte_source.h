#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

namespace sheaf {

/// The bytes of a file, or of a URI, from front to back, decompressed where it is gzip or zstd by its first
/// bytes or by its name (.gz, .zst).
class ByteSource {
 public:
  virtual ~ByteSource() = default;
  /// Reads up to `size` bytes; 0 at the end. Throws an Error that names the file where the disk fails.
  virtual size_t read(char* target, size_t size) = 0;
  /// Reads on from byte `offset` of the file, which was given out before. False where that takes reading the
  /// file again from its beginning.
  virtual bool seek(int64_t /*offset*/) { return false; }
  /// Bytes of the file, packed as they may be, that what was given out so far takes.
  virtual int64_t taken() const = 0;
  /// After the end: why the rest of a compressed file cannot be read; empty where all of it was.
  virtual std::string damage() const { return {}; }
};

/// Refuses a file that cannot be opened.
std::unique_ptr<ByteSource> open_bytes(const std::string& path);

}  // namespace sheaf
