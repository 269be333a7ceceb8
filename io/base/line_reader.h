#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "io/base/byte_source.h"

namespace sheaf {

/// The lines of a text file, one at a time, in bounded memory.
class LineReader {
 public:
  static constexpr size_t kLongestLine = 16 << 20;

  explicit LineReader(const std::string& path);

  struct Line {
    std::string_view text;  ///< without its line end; valid until the next call
    int64_t number = 0;     ///< from 1
    bool too_long = false;  ///< longer than kLongestLine: `text` is empty
    std::string damage;     ///< where not empty, why this line and what follows cannot be read; the last one
  };
  std::optional<Line> next();
  /// About how many bytes of the file the lines so far take.
  int64_t taken() const;

 private:
  void fill();

  std::unique_ptr<ByteSource> source_;
  std::string buffer_;  // [begin_, end_) is what was read and not yet given out
  size_t begin_ = 0;
  size_t end_ = 0;
  int64_t number_ = 0;
  int64_t filled_ = 0;  // bytes that came from the source
  bool ended_ = false;
  bool told_ = false;  // of the damage at the end
};

}  // namespace sheaf
