#include <algorithm>
#include <arrow/buffer.h>
#include <arrow/io/interfaces.h>
#include <arrow/util/future.h>
#include <arrow/util/thread_pool.h>
#include <chrono>
#include <cstring>
#include <mutex>
#include <set>

#include "io/base/store.h"
#include "io/base/store_retry.h"

namespace sheaf {
namespace {

using arrow::Buffer;
using arrow::Result;
using arrow::Status;

// At 30 ms an answer, six blocks on their way give some 300 MB/s, more than lines are parsed at.
constexpr int64_t kBlock = 2 << 20;
constexpr int64_t kAhead = 6;
constexpr size_t kMostBlocks = 32;
// A block is read with the last bytes of the one before it, which tell whether a server or a proxy sent what
// it was asked for: Arrow does not look at the range that an answer says it has.
constexpr int64_t kOverlap = 64;
constexpr size_t kMostTails = 256;  // blocks

/// Reads into memory whose last byte tells whether it was written: Arrow counts all bytes that it asked an
/// object store for, also where fewer came. That byte may be what the file has there, which a second reading
/// over another one shows.
Result<std::shared_ptr<Buffer>> read_all(arrow::io::RandomAccessFile& file, int64_t position, int64_t size) {
  ARROW_ASSIGN_OR_RAISE(std::shared_ptr<Buffer> bytes, arrow::AllocateBuffer(size));
  uint8_t& last = bytes->mutable_data()[size - 1];
  for (const uint8_t mark : {uint8_t{0xa7}, uint8_t{0x58}}) {
    last = mark;
    ARROW_ASSIGN_OR_RAISE(const int64_t count, file.ReadAt(position, size, bytes->mutable_data()));
    if (count < size) return Status::IOError("the file became shorter");
    if (last != mark) return bytes;
  }
  return Status::IOError("the store sent fewer bytes than it was asked for");
}

class ReadAheadFile : public arrow::io::RandomAccessFile {
 public:
  ReadAheadFile(std::shared_ptr<arrow::io::RandomAccessFile> file, int64_t size, std::string name)
      : file_(std::move(file)), size_(size), name_(std::move(name)) {
    expected_.insert(0);
    if (size_ > 0) start(0);
  }
  ~ReadAheadFile() override { end_reads(); }

  Result<int64_t> GetSize() override { return size_; }
  Result<int64_t> Tell() const override { return position_; }
  bool closed() const override { return closed_; }
  Status Close() override {
    closed_ = true;
    end_reads();
    return Status::OK();
  }
  Status Seek(int64_t position) override {
    if (position < 0 || position > size_) return Status::IOError("seek beyond the end of the file");
    position_ = position;
    return Status::OK();
  }

  Result<int64_t> Read(int64_t size, void* to) override {
    ARROW_ASSIGN_OR_RAISE(const int64_t count, ReadAt(position_, size, to));
    position_ += count;
    return count;
  }

  Result<std::shared_ptr<Buffer>> Read(int64_t size) override {
    ARROW_ASSIGN_OR_RAISE(auto bytes, ReadAt(position_, size));
    position_ += bytes->size();
    return bytes;
  }

  Result<std::shared_ptr<Buffer>> ReadAt(int64_t position, int64_t size) override {
    const int64_t count = std::clamp<int64_t>(size_ - position, 0, std::max<int64_t>(size, 0));
    ARROW_ASSIGN_OR_RAISE(std::shared_ptr<arrow::ResizableBuffer> bytes,
                          arrow::AllocateResizableBuffer(count));
    ARROW_ASSIGN_OR_RAISE(const int64_t read, ReadAt(position, count, bytes->mutable_data()));
    if (read < count) return Status::IOError("the file became shorter");
    return bytes;
  }

  Result<int64_t> ReadAt(int64_t position, int64_t size, void* to) override {
    const std::lock_guard lock(mutex_);
    if (position < 0 || size < 0) return Status::Invalid("a negative place or size");
    const int64_t count = std::clamp<int64_t>(size_ - position, 0, size);
    for (int64_t done = 0; done < count;) {
      const int64_t number = (position + done) / kBlock, begin = (position + done) % kBlock;
      ARROW_ASSIGN_OR_RAISE(const std::shared_ptr<Buffer> bytes, block(number));
      const int64_t part = std::min(count - done, bytes->size() - begin);
      std::memcpy(static_cast<char*>(to) + done, bytes->data() + begin, static_cast<size_t>(part));
      done += part;
    }
    return count;
  }

 private:
  struct Block {
    arrow::Future<std::shared_ptr<Buffer>> bytes;
    int64_t used = 0;  ///< when, by a count
  };

  /// Waits up to 2 s for reads in flight. A thread that reads while the program ends would use what Arrow has
  /// taken down by then; a store that never answers must not hold the program.
  void end_reads() {
    const auto patience = std::chrono::steady_clock::now() + std::chrono::seconds(2);
    for (const auto& [number, block] : blocks_) {
      const std::chrono::duration<double> left = patience - std::chrono::steady_clock::now();
      block.bytes.Wait(std::max(left.count(), 0.0));
    }
    blocks_.clear();
  }

  int64_t length(int64_t number) const { return std::min(kBlock, size_ - number * kBlock); }

  void start(int64_t number) {
    if (number * kBlock >= size_ || blocks_.contains(number)) return;
    if (blocks_.size() >= kMostBlocks)
      blocks_.erase(std::ranges::min_element(blocks_, {}, [](const auto& each) { return each.second.used; }));
    blocks_[number] = {read_beside(number), ++uses_};
  }

  Result<std::shared_ptr<Buffer>> block(int64_t number) {
    start(number);
    // What follows is asked for where reading came to this block from the one before it.
    const bool follows = expected_.erase(number) > 0;
    expected_.insert(number + 1);
    for (int64_t next = number + 1; follows && next <= number + kAhead; ++next) start(next);
    start(number);  // room for the others may have cost it its place
    blocks_[number].used = ++uses_;
    const auto future = blocks_[number].bytes;
    Result<std::shared_ptr<Buffer>> read = checked(number, future.result());
    if (read.ok()) return own_part(number, *read);
    read = ask_store([&] { return checked(number, read_all(*file_, begin(number), size(number))); });
    if (!read.ok()) {
      blocks_.erase(number);
      mark_unread(name_, read.status());
      return read;
    }
    blocks_[number].bytes = arrow::Future<std::shared_ptr<Buffer>>::MakeFinished(read);
    return own_part(number, *read);
  }

  static int64_t overlap(int64_t number) { return number == 0 ? 0 : kOverlap; }
  static int64_t begin(int64_t number) { return number * kBlock - overlap(number); }
  int64_t size(int64_t number) const { return length(number) + overlap(number); }

  static std::shared_ptr<Buffer> own_part(int64_t number, const std::shared_ptr<Buffer>& read) {
    return arrow::SliceBuffer(read, overlap(number));
  }

  /// Compares what was read with the end of the block before it, where that is known.
  Result<std::shared_ptr<Buffer>> checked(int64_t number, Result<std::shared_ptr<Buffer>> read) {
    if (!read.ok()) return read;
    const std::string_view bytes(**read);
    const auto before = tails_.find(number - 1);
    if (before != tails_.end() && !bytes.starts_with(before->second))
      return Status::IOError("the store sent other bytes than it was asked for");
    if (length(number) == kBlock) tails_[number] = bytes.substr(bytes.size() - kOverlap);
    if (tails_.size() > kMostTails) tails_.erase(tails_.begin());
    return read;
  }

  /// On a thread of Arrow's, which keeps the file until it is done.
  arrow::Future<std::shared_ptr<Buffer>> read_beside(int64_t number) const {
    auto begun = arrow::io::default_io_context().executor()->Submit(
        [file = file_, at = begin(number), size = size(number)] { return read_all(*file, at, size); });
    if (begun.ok()) return *std::move(begun);
    return arrow::Future<std::shared_ptr<Buffer>>::MakeFinished(begun.status());
  }

  const std::shared_ptr<arrow::io::RandomAccessFile> file_;
  const int64_t size_;
  const std::string name_;
  std::mutex mutex_;
  std::map<int64_t, Block> blocks_;
  std::map<int64_t, std::string> tails_;  // last bytes of blocks that were read
  std::set<int64_t> expected_;            // blocks that follow one that was used
  int64_t uses_ = 0, position_ = 0;
  bool closed_ = false;
};

}  // namespace

std::shared_ptr<arrow::io::RandomAccessFile> read_ahead(std::shared_ptr<arrow::io::RandomAccessFile> file,
                                                        int64_t size, std::string name) {
  return std::make_shared<ReadAheadFile>(std::move(file), size, std::move(name));
}

}  // namespace sheaf
