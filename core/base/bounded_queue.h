#pragma once
#include <condition_variable>
#include <deque>
#include <mutex>
#include <optional>

namespace sheaf {

/// Hands values from one thread to another, at most `most` of them waiting.
template <class Value>
class BoundedQueue {
 public:
  explicit BoundedQueue(size_t most) : most_(most) {}

  /// Waits for room. False, and the value is gone, once the queue is closed.
  bool push(Value value) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return closed_ || values_.size() < most_; });
    if (closed_) return false;
    values_.push_back(std::move(value));
    changed_.notify_all();
    return true;
  }

  /// Waits for a value. Nothing once the queue is closed and empty.
  std::optional<Value> pop() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return closed_ || !values_.empty(); });
    if (values_.empty()) return std::nullopt;
    std::optional<Value> value = std::move(values_.front());
    values_.pop_front();
    changed_.notify_all();
    return value;
  }

  /// Nothing more comes; what waits can still be taken.
  void close() {
    const std::lock_guard lock(mutex_);
    closed_ = true;
    changed_.notify_all();
  }

 private:
  const size_t most_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Value> values_;
  bool closed_ = false;
};

}  // namespace sheaf
