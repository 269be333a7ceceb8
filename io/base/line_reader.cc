#include "io/base/line_reader.h"

#include <algorithm>
#include <arrow/io/file.h>
#include <arrow/util/compression.h>
#include <cstring>
#include <fcntl.h>

#include "core/base/interrupted.h"
#include "core/text/spelling.h"
#include "core/text/utf8.h"
#include "io/base/descriptor.h"
#include "io/base/store.h"
#include "io/base/store_retry.h"

namespace sheaf {
namespace {

constexpr size_t kInput = 64 << 10;
constexpr size_t kMostOutput = 64 << 10;
constexpr size_t kChunk = 256 << 10;

/// The bytes as they stand in the file.
class PlainSource : public ByteSource {
 public:
  explicit PlainSource(const std::string& path) : path_(path) {
    if (is_uri(path)) {
      file_ = open_store_file(path);
      return;
    }
    Descriptor file = open_regular(path, O_RDONLY);
    if (file.number() < 0) refuse_unopened(path);
    auto opened = arrow::io::ReadableFile::Open(file.release());
    if (!opened.ok()) refuse("{}: the file cannot be read: {}", path, opened.status().message());
    file_ = std::move(opened).ValueUnsafe();
  }

  size_t read(char* target, size_t size) override {
    if (own_job_stopped()) fail_for_now("interrupted while reading {}", path_);
    const auto count = file_->Read(static_cast<int64_t>(size), target);
    if (!count.ok()) check_read(path_);
    if (!count.ok()) fail("{}: the file cannot be read: {}", path_, count.status().message());
    taken_ += *count;
    return static_cast<size_t>(*count);
  }

  bool seek(int64_t offset) override {
    if (!file_->Seek(offset).ok()) return false;
    taken_ = offset;
    return true;
  }

  int64_t taken() const override { return taken_; }

  /// The first bytes of the file; to be asked for before reading.
  std::string beginning(size_t size) {
    std::string bytes(size, '\0');
    bytes.resize(read(bytes.data(), size));
    taken_ = 0;
    if (!file_->Seek(0).ok())
      refuse("{}: the file cannot be read twice; use input.path: \"-\" for a pipe", path_);
    return bytes;
  }

 private:
  std::string path_;
  std::shared_ptr<arrow::io::RandomAccessFile> file_;
  int64_t taken_ = 0;
};

/// gzip members or zstd frames, one after the other.
class PackedSource : public ByteSource {
 public:
  PackedSource(std::unique_ptr<PlainSource> packed, arrow::Compression::type type)
      : packed_(std::move(packed)), input_(kInput) {
    auto codec = arrow::util::Codec::Create(type);
    if (!codec.ok()) fail("the decompressor cannot be created: {}", codec.status().message());
    codec_ = std::move(codec).ValueUnsafe();
    auto made = codec_->MakeDecompressor();
    if (!made.ok()) fail("the decompressor cannot be started: {}", made.status().message());
    decompressor_ = std::move(made).ValueUnsafe();
  }

  size_t read(char* target, size_t size) override {
    size = std::min(size, kMostOutput);
    while (!ended_) {
      // Zeros may fill up the last block of a tape.
      if (between_ && any_)
        while (begin_ < end_ && input_[begin_] == 0) ++begin_;
      if (begin_ == end_ && !more_inside_) {
        refill();
        continue;
      }
      // Arrow gives no count with an error. What came out before it stands in `target` all the same, and its
      // end is known because text has no zero bytes.
      std::memset(target, 0, size);
      const auto step = decompressor_->Decompress(
          static_cast<int64_t>(end_ - begin_), reinterpret_cast<const uint8_t*>(input_.data()) + begin_,
          static_cast<int64_t>(size), reinterpret_cast<uint8_t*>(target));
      if (!step.ok()) {
        end_with(step.status().message());
        while (size > 0 && target[size - 1] == 0) --size;
        return size;
      }
      begin_ += static_cast<size_t>(step->bytes_read);
      between_ = decompressor_->IsFinished();
      more_inside_ = !between_ && step->bytes_written == static_cast<int64_t>(size);
      if (between_ && !decompressor_->Reset().ok()) fail("the decompressor cannot be restarted");
      any_ = any_ || between_;
      if (step->bytes_written > 0) return static_cast<size_t>(step->bytes_written);
      if (step->bytes_read == 0 && begin_ < end_) end_with("the compressed data is damaged");
    }
    return 0;
  }

  int64_t taken() const override { return packed_->taken() - static_cast<int64_t>(end_ - begin_); }
  std::string damage() const override { return damage_; }

 private:
  void refill() {
    begin_ = 0;
    end_ = packed_->read(input_.data(), input_.size());
    if (end_ == 0) end_with(any_ && between_ ? "" : "it is cut off");
  }

  void end_with(std::string damage) {
    ended_ = true;
    damage_ = std::move(damage);
  }

  std::unique_ptr<PlainSource> packed_;
  std::unique_ptr<arrow::util::Codec> codec_;
  std::shared_ptr<arrow::util::Decompressor> decompressor_;
  std::vector<char> input_;  // [begin_, end_) was read and not yet unpacked
  size_t begin_ = 0, end_ = 0;
  bool between_ = true;       // no member is begun
  bool any_ = false;          // a member was whole
  bool more_inside_ = false;  // the decompressor may hold bytes that did not fit
  bool ended_ = false;
  std::string damage_;
};

}  // namespace

std::string unpacked_name(const std::string& path) {
  std::string name = small_letters(path);
  for (const std::string_view packed : {".gz", ".zst"})
    if (name.ends_with(packed)) name.resize(name.size() - packed.size());
  return name;
}

std::unique_ptr<ByteSource> open_bytes(const std::string& path) {
  auto plain = std::make_unique<PlainSource>(path);
  const std::string magic = plain->beginning(4);
  if (path.ends_with(".gz") || magic.starts_with("\x1f\x8b"))
    return std::make_unique<PackedSource>(std::move(plain), arrow::Compression::GZIP);
  if (path.ends_with(".zst") || magic == "\x28\xb5\x2f\xfd")
    return std::make_unique<PackedSource>(std::move(plain), arrow::Compression::ZSTD);
  return plain;
}

void BufferedReader::fill() {
  if (begin_ > 0) {
    std::memmove(buffer_.data(), buffer_.data() + begin_, end_ - begin_);
    end_ -= begin_;
    begin_ = 0;
  }
  // Doubling keeps a record that grows over many chunks linear.
  if (buffer_.size() - end_ < kChunk) buffer_.resize(std::max(buffer_.size() * 2, end_ + kChunk));
  const size_t count = source_->read(buffer_.data() + end_, buffer_.size() - end_);
  ended_ = count == 0;
  filled_ += static_cast<int64_t>(count);
  end_ += count;
}

int64_t BufferedReader::taken(size_t left) const {
  if (filled_ == 0) return 0;
  const double given_out = 1 - static_cast<double>(left) / static_cast<double>(filled_);
  return static_cast<int64_t>(given_out * static_cast<double>(source_->taken()));
}

void LineReader::Line::check() const {
  if (!damage.empty()) reject("the rest of the file cannot be read: {}", damage);
  if (too_long) reject("the line has more than {} MB", kLongestLine >> 20);
}

std::optional<LineReader::Line> LineReader::next_record() {
  std::optional<Line> line = next();
  while (line && !line->too_long && line->damage.empty() && line->is_blank()) line = next();
  return line;
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
