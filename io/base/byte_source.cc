#include "io/base/byte_source.h"

#include <algorithm>
#include <arrow/io/file.h>
#include <arrow/result.h>
#include <arrow/util/compression.h>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <vector>

#include "core/base/error.h"
#include "io/base/descriptor.h"
#include "io/base/store.h"
#include "io/base/store_retry.h"

namespace sheaf {
namespace {

constexpr size_t kInput = 64 << 10;
constexpr size_t kMostOutput = 64 << 10;

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

std::unique_ptr<ByteSource> open_bytes(const std::string& path) {
  auto plain = std::make_unique<PlainSource>(path);
  const std::string magic = plain->beginning(4);
  if (path.ends_with(".gz") || magic.starts_with("\x1f\x8b"))
    return std::make_unique<PackedSource>(std::move(plain), arrow::Compression::GZIP);
  if (path.ends_with(".zst") || magic == "\x28\xb5\x2f\xfd")
    return std::make_unique<PackedSource>(std::move(plain), arrow::Compression::ZSTD);
  return plain;
}

}  // namespace sheaf
