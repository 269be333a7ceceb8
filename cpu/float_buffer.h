#pragma once
#include <cstdint>
#include <memory>
#include <span>

namespace sheaf {

/// Zeroed floats for large arrays: aligned for vectors and huge pages, memory taken only as it is touched.
class FloatBuffer {
 public:
  FloatBuffer() = default;
  /// Fails, naming `what`, when the machine has less memory than that.
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

/// Fails, naming `what`, when `floats` floats are more than the machine's memory.
void check_memory(int64_t floats, const char* what);

}  // namespace sheaf
