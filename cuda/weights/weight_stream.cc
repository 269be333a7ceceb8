// Weights come out of the mapped files on several threads, each of which takes the next slice and the oldest
// buffer, waits until that buffer has been copied, fills it and sends it. Buffers are free again in the order
// in which they were sent, which is the order in which one stream copies them.
//
// Ways to get a file's bytes into a buffer, 8.6 GB, 2 cores, 4 to 16 threads, slices of 4 to 32 MB:
//                                             in the page cache   from the disk
//   copy out of the mapping, page by page     39 GB/s             2.2 GB/s
//   MADV_POPULATE_READ, then copy             43 GB/s             2.8 to 8 GB/s (median 4)
//   pread                                     34 GB/s             2.5 to 6.5 GB/s (median 3.3)
// The second needs neither descriptors nor a second buffer for types that are converted, and says so when a
// file is cut short.
//
// That weights are finite is checked here, on the host, by Matrix's read functions: rows are in the cache
// then, and a core checks 20 GB/s. A kernel after the copy would need a form for each packed type and a flag
// for each tensor, and no test without a GPU would see it.
#include "cuda/weights/weight_stream.h"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <deque>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>

#include "core/base/error.h"

namespace sheaf::cuda {
namespace {

// Pinning memory takes half a millisecond a megabyte: a small model gets smaller buffers.
constexpr int64_t kLargestBuffer = int64_t{4} << 20, kSmallestBuffer = int64_t{1} << 18;
constexpr int64_t kFewestSlices = 512;

void fill(const WeightSlice& slice, std::byte* buffer) {
  const Matrix& matrix = *slice.matrix;
  matrix.page_in(slice.first_row, slice.rows);
  if (slice.form == Precision::bf16)
    matrix.read_bf16(slice.first_row, slice.rows, reinterpret_cast<uint16_t*>(buffer));
  else if (slice.form == Precision::f32)
    matrix.read(slice.first_row, slice.rows, reinterpret_cast<float*>(buffer));
  else if (slice.form == Precision::fp8)
    matrix.read_e4m3(slice.first_row, slice.rows, reinterpret_cast<uint8_t*>(buffer), slice.scales);
  else
    matrix.read_stored(slice.first_row, slice.rows, buffer);
}

class Stream {
 public:
  Stream(std::span<const WeightSlice> slices, const WeightRing& ring, WeightSink& sink)
      : slices_(slices), ring_(ring), sink_(sink) {
    for (int i = 0; i < ring.buffers; ++i) free_.push_back(i);
  }

  void run(int threads) {
    {
      std::vector<std::jthread> workers;
      try {
        for (int i = 0; i < threads; ++i) workers.emplace_back([this] { work(); });
      } catch (...) {
        stop(std::current_exception());
      }
    }
    // Also after an error: the caller frees the buffers.
    for (int i = 0; i < ring_.buffers; ++i) {
      try {
        sink_.wait(i);
      } catch (...) {
        stop(std::current_exception());
      }
    }
    if (error_) std::rethrow_exception(error_);
  }

 private:
  void work() {
    try {
      while (next_slice()) {
      }
    } catch (...) {
      stop(std::current_exception());
    }
  }

  /// False when there is none left, or after an error.
  bool next_slice() {
    const size_t index = next_.fetch_add(1);
    if (index >= slices_.size()) return false;
    const WeightSlice& slice = slices_[index];
    const int buffer = take_buffer();
    if (buffer < 0) return false;
    sink_.wait(buffer);
    std::byte* memory = ring_.memory + buffer * ring_.buffer_bytes;
    fill(slice, memory);
    const std::scoped_lock lock(mutex_);
    if (error_) return false;
    try {
      sink_.send(buffer, memory, slice.bytes(), slice.to);
    } catch (...) {  // before another thread can send
      error_ = std::current_exception();
      changed_.notify_all();
      return false;
    }
    free_.push_back(buffer);
    changed_.notify_one();
    return true;
  }

  /// -1 after an error.
  int take_buffer() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return error_ || !free_.empty(); });
    if (error_) return -1;
    const int buffer = free_.front();
    free_.pop_front();
    return buffer;
  }

  void stop(std::exception_ptr error) {
    const std::scoped_lock lock(mutex_);
    if (!error_) error_ = std::move(error);
    changed_.notify_all();
  }

  std::span<const WeightSlice> slices_;
  WeightRing ring_;
  WeightSink& sink_;
  std::atomic<size_t> next_ = 0;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<int> free_;  ///< the oldest sent first; may still be on their way
  std::exception_ptr error_;
};

}  // namespace

int64_t ring_buffer_bytes(std::span<const WeightSlice> wholes) {
  int64_t total = 0;
  for (const WeightSlice& whole : wholes) total += whole.bytes();
  int64_t bytes = std::clamp((total / kFewestSlices + 4095) / 4096 * 4096, kSmallestBuffer, kLargestBuffer);
  for (const WeightSlice& whole : wholes) bytes = std::max(bytes, whole.row_bytes());
  return bytes;
}

std::vector<WeightSlice> cut_to_slices(std::span<const WeightSlice> wholes, int64_t buffer_bytes) {
  std::vector<WeightSlice> slices;
  for (const WeightSlice& whole : wholes) {
    const int64_t row_bytes = whole.row_bytes();
    const int64_t most = buffer_bytes / row_bytes;
    if (most == 0)
      fail("{}: a row of {} bytes does not fit a buffer of {}", whole.matrix->name, row_bytes, buffer_bytes);
    for (int64_t done = 0; done < whole.rows; done += most)
      slices.push_back({whole.matrix, whole.first_row + done, std::min(most, whole.rows - done), whole.form,
                        whole.to + done * row_bytes, whole.scales ? whole.scales + done : nullptr});
  }
  const auto place = [](const WeightSlice& slice) {
    return slice.matrix->data + slice.first_row * slice.matrix->row_bytes();
  };
  std::ranges::stable_sort(slices, std::less<>(), place);
  return slices;
}

int reading_threads() {
  return std::clamp(static_cast<int>(std::thread::hardware_concurrency()), 4, 16);
}

void stream_weights(std::span<const WeightSlice> slices, const WeightRing& ring, int threads,
                    WeightSink& sink) {
  if (ring.buffers < 1 || threads < 1) fail("{} threads cannot fill {} buffers", threads, ring.buffers);
  for (const WeightSlice& slice : slices)
    if (slice.bytes() > ring.buffer_bytes)
      fail("{}: {} bytes do not fit a buffer of {}", slice.matrix->name, slice.bytes(), ring.buffer_bytes);
  Stream(slices, ring, sink).run(threads);
}

}  // namespace sheaf::cuda
