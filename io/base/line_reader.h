#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace sheaf {

constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";

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

/// The name of a file in small letters, without .gz and .zst at its end.
std::string unpacked_name(const std::string& path);
/// Refuses a file that cannot be opened.
std::unique_ptr<ByteSource> open_bytes(const std::string& path);

/// What readers of records share: the bytes of a file that were read and not yet given out.
class BufferedReader {
 protected:
  explicit BufferedReader(const std::string& path) : source_(open_bytes(path)) {}
  /// Reads more; sets `ended_` where there is nothing more.
  void fill();
  /// About how many bytes of the file are given out where `left` bytes of the buffer are not.
  int64_t taken(size_t left) const;

  std::unique_ptr<ByteSource> source_;
  std::string buffer_;  // [begin_, end_) was read and not yet given out
  size_t begin_ = 0, end_ = 0;
  int64_t filled_ = 0;  // bytes that came from the source
  bool ended_ = false;
  bool told_ = false;  // of the damage at the end
};

/// The lines of a text file, one at a time, in bounded memory.
class LineReader : BufferedReader {
 public:
  static constexpr size_t kLongestLine = 16 << 20;

  explicit LineReader(const std::string& path) : BufferedReader(path) {}

  struct Line {
    std::string_view text;  ///< without its line end; valid until the next call
    int64_t number = 0;     ///< from 1
    bool too_long = false;  ///< longer than kLongestLine: `text` is empty
    std::string damage;     ///< where not empty, why this line and what follows cannot be read; the last one

    bool is_blank() const { return text.find_first_not_of(" \t\r") == std::string_view::npos; }
    /// Throws a BadText where the line cannot be read.
    void check() const;
  };
  std::optional<Line> next();
  /// The next line that is not blank.
  std::optional<Line> next_record();
  /// About how many bytes of the file the lines so far take.
  int64_t taken() const { return BufferedReader::taken(end_ - begin_); }

 private:
  int64_t number_ = 0;
};

}  // namespace sheaf
