#pragma once
#include <cstdint>
#include <limits>
#include <memory>

namespace sheaf {

int64_t machine_memory();  ///< bytes

/// Throws OutOfMemory, naming `what`, when the machine has less memory than `bytes`.
void check_memory(int64_t bytes, const char* what);

/// Throws OutOfMemory where a key/value pool of so many bytes is more than 7/8 of the machine's memory, or
/// `made` and there is no room (`ulimit -v`) beside it for the rest of the job.
void check_pool(double bytes, bool made);

/// Zeroed memory from the system, which MappedBytes gives back.
struct MappedBytes {
  int64_t bytes = 0;
  std::shared_ptr<const void> chunk;  ///< that the memory is a part of, or null; it goes with its last part
  void operator()(void* data) const;
};
std::unique_ptr<void, MappedBytes> map_zeroed(int64_t bytes, const char* what);

/// Zeroed values for large arrays: aligned for vectors and huge pages, memory taken only as it is touched.
template <class T>
class LargeBuffer {
 public:
  LargeBuffer() = default;
  /// Throws OutOfMemory, naming `what`, where the machine has less memory than that or does not give it.
  LargeBuffer(int64_t count, const char* what)
      : data_(map_zeroed(
            count < 0 || count > kMostBytes / int64_t{sizeof(T)} ? kMostBytes : count * int64_t{sizeof(T)},
            what)),
        count_(count) {}

  T* data() const { return static_cast<T*>(data_.get()); }
  int64_t size() const { return count_; }
  /// Makes room for `count` values; what was in it is lost when it grows.
  void reserve(int64_t count, const char* what) {
    if (count > count_) *this = LargeBuffer(count + count / 2, what);
  }

 private:
  static constexpr int64_t kMostBytes = std::numeric_limits<int64_t>::max();

  std::unique_ptr<void, MappedBytes> data_;
  int64_t count_ = 0;
};

using FloatBuffer = LargeBuffer<float>;

}  // namespace sheaf
