#pragma once
#include <cstdint>
#include <memory>
#include <span>

namespace sheaf {

/// Zeroed floats for large arrays: aligned for vectors and huge pages, memory taken only as it is touched.
class FloatBuffer {
 public:
  FloatBuffer() = default;
  /// Throws OutOfMemory, naming `what`, where the machine has less memory than that or does not give it.
  FloatBuffer(int64_t count, const char* what);

  float* data() const { return data_.get(); }
  int64_t size() const { return count_; }
  /// Makes room for `count` floats; what was in it is lost when it grows.
  void reserve(int64_t count, const char* what) {
    if (count > count_) *this = FloatBuffer(count + count / 2, what);
  }

 private:
  struct Release {
    int64_t bytes;
    void operator()(float* data) const;
  };
  std::unique_ptr<float[], Release> data_;
  int64_t count_ = 0;
};

int64_t machine_memory();  ///< bytes

/// Throws OutOfMemory, naming `what`, when `floats` floats are more than the machine's memory.
void check_memory(int64_t floats, const char* what);

/// Throws OutOfMemory where a key/value pool of so many bytes is more than 7/8 of the machine's memory, or
/// `made` and there is no room (`ulimit -v`) beside it for the rest of the job.
void check_pool(double bytes, bool made);

}  // namespace sheaf
