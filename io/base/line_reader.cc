#include "io/base/line_reader.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace sheaf {
namespace {

constexpr size_t kChunk = 256 << 10;
constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";

}  // namespace

LineReader::LineReader(const std::string& path) : source_(open_bytes(path)) {}

void LineReader::fill() {
  if (begin_ > 0) {
    std::memmove(buffer_.data(), buffer_.data() + begin_, end_ - begin_);
    end_ -= begin_;
    begin_ = 0;
  }
  // Doubling keeps a line that grows over many chunks linear.
  if (buffer_.size() - end_ < kChunk) buffer_.resize(std::max(buffer_.size() * 2, end_ + kChunk));
  const size_t count = source_->read(buffer_.data() + end_, buffer_.size() - end_);
  ended_ = count == 0;
  filled_ += static_cast<int64_t>(count);
  end_ += count;
}

int64_t LineReader::taken() const {
  if (filled_ == 0) return 0;
  const double given_out = 1 - static_cast<double>(end_ - begin_) / static_cast<double>(filled_);
  return static_cast<int64_t>(given_out * static_cast<double>(source_->taken()));
}

std::optional<LineReader::Line> LineReader::next() {
  size_t searched = 0;  // bytes of [begin_, end_) without a line end
  bool too_long = false;
  for (;;) {
    const char* from = buffer_.data() + begin_;
    const size_t have = end_ - begin_;
    const void* found = have > searched ? std::memchr(from + searched, '\n', have - searched) : nullptr;
    if (!found && !ended_) {
      fill();
      searched = have;
      if (have > kLongestLine) {
        too_long = true;
        begin_ += have;
        searched = 0;
      }
      continue;
    }
    if (!found && !source_->damage().empty()) {
      if (std::exchange(told_, true)) return std::nullopt;
      return Line{{}, ++number_, false, source_->damage()};
    }
    if (!found && have == 0 && !too_long) return std::nullopt;
    const size_t length = found ? static_cast<size_t>(static_cast<const char*>(found) - from) : have;
    Line line{std::string_view(from, length), ++number_, too_long || length > kLongestLine, {}};
    begin_ += length + (found ? 1 : 0);
    if (line.number == 1 && line.text.starts_with(kByteOrderMark))
      line.text.remove_prefix(kByteOrderMark.size());
    if (line.text.ends_with('\r')) line.text.remove_suffix(1);
    if (line.too_long) line.text = {};
    return line;
  }
}

}  // namespace sheaf
