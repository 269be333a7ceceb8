#pragma once
#include <atomic>
#include <cstdint>
#include <exception>
#include <mutex>
#include <thread>
#include <type_traits>
#include <vector>

namespace sheaf {

/// A few threads that share loops. The caller works too, and waits only for threads that took part, so a
/// thread that the machine keeps from running delays nobody. One caller at a time.
class ThreadPool {
 public:
  explicit ThreadPool(int threads);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int size() const { return static_cast<int>(workers_.size()) + 1; }

  /// Calls body(task, thread) for every task in [0, tasks), in any order, with thread in [0, size()).
  /// The first exception of a task is thrown here; tasks that have not begun by then are left out.
  template <class Body>
  void run(int64_t tasks, Body&& body) {
    if (tasks <= 1 || workers_.empty()) {
      for (int64_t task = 0; task < tasks; ++task) body(task, 0);
      return;
    }
    using Plain = std::remove_reference_t<Body>;
    run_tasks(
        tasks, [](void* context, int64_t task, int thread) { (*static_cast<Plain*>(context))(task, thread); },
        const_cast<void*>(static_cast<const void*>(&body)));
  }

 private:
  using Call = void (*)(void* context, int64_t task, int thread);

  void run_tasks(int64_t tasks, Call call, void* context);
  void work(int thread);
  void stop();
  void take_tasks(int thread);

  // Bit 0: open for work. Bits 1 to 15: workers inside. From bit 16: the number of the loop.
  alignas(64) std::atomic<uint64_t> gate_{0};
  alignas(64) std::atomic<int64_t> next_{0};
  std::atomic<bool> stop_{false};
  int64_t tasks_ = 0;
  Call call_ = nullptr;
  void* context_ = nullptr;
  const std::atomic<bool>* callers_stop_ = nullptr;
  std::mutex error_mutex_;
  std::exception_ptr error_;
  std::vector<std::jthread> workers_;
};

}  // namespace sheaf
