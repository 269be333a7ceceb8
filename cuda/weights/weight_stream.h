#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/model/model.h"
#include "core/model/precision.h"

namespace sheaf::cuda {

/// Rows of a matrix on their way to the device.
struct WeightSlice {
  const Matrix* matrix = nullptr;
  int64_t first_row = 0;
  int64_t rows = 0;
  /// bf16: matrices; f32: norms and biases; fp8: e4m3 with a scale for each row, matrices of FP8 products;
  /// automatic: as the file has them.
  Precision form = Precision::bf16;
  std::byte* to = nullptr;  ///< [rows, matrix->cols] in that form; handed to the sink, not looked at here
  float* scales = nullptr;  ///< [rows] on the host, written where the form is fp8

  int64_t row_bytes() const {
    if (form == Precision::automatic) return matrix->row_bytes();
    return matrix->cols * (form == Precision::f32 ? 4 : form == Precision::bf16 ? 2 : 1);
  }
  int64_t bytes() const { return rows * row_bytes(); }
};

/// Takes filled buffers away.
class WeightSink {
 public:
  virtual ~WeightSink() = default;
  /// Starts copying a buffer and may return before that is done. Called by one thread at a time.
  virtual void send(int buffer, const std::byte* from, int64_t bytes, std::byte* to) = 0;
  /// Returns when the last copy out of `buffer` is done. Called by many threads, each with its own buffer.
  virtual void wait(int buffer) = 0;
};

/// The buffers between the threads that read and the sink.
struct WeightRing {
  std::byte* memory = nullptr;  ///< [buffers, buffer_bytes]
  int buffers = 0;
  int64_t buffer_bytes = 0;
};

/// A buffer of 4 MB crosses to the device in about 0.1 ms, long against the cost of starting a copy, and
/// keeps the ring small: pinning memory takes time. Small models get smaller buffers, and a row that is
/// larger a larger one.
int64_t ring_buffer_bytes(std::span<const WeightSlice> wholes);

/// Cuts whole matrices into slices that fit a buffer, in the order in which they lie in their files.
std::vector<WeightSlice> cut_to_slices(std::span<const WeightSlice> wholes, int64_t buffer_bytes);

/// As many threads as cores, so that conversion keeps up, but at least a few, so that a disk has several
/// requests to work on.
int reading_threads();

/// Reads all slices on `threads` threads and hands them to the sink; returns when the sink is done with all
/// of them. The first error of a thread or of the sink is thrown again here, after all threads have ended.
void stream_weights(std::span<const WeightSlice> slices, const WeightRing& ring, int threads,
                    WeightSink& sink);

}  // namespace sheaf::cuda
