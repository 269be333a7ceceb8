#include "core/base/thread_pool.h"

#include <chrono>
#include <system_error>
#include <utility>

#include "core/base/error.h"
#include "core/base/interrupted.h"

namespace sheaf {
namespace {

constexpr uint64_t kOpen = 1;
constexpr uint64_t kWorker = 2;
constexpr uint64_t kInside = 0xfffe;
constexpr uint64_t kLoop = 0x10000;

void pause_briefly() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("isb" ::: "memory");
#endif
}

/// The loops of one step follow each other within microseconds; sleeping between them would cost more than
/// they do.
constexpr std::chrono::microseconds kPatience{200};

}  // namespace

ThreadPool::ThreadPool(int threads) {
  try {
    for (int thread = 1; thread < threads; ++thread) workers_.emplace_back([this, thread] { work(thread); });
  } catch (const std::system_error& error) {
    stop();  // no destructor does it, and those that run wait for ever
    fail("only {} of {} threads could be started: {}; use fewer with --threads, or raise the limit",
         workers_.size() + 1, threads, error.code().message());
  }
}

ThreadPool::~ThreadPool() {
  stop();
}

void ThreadPool::stop() {
  stop_ = true;
  gate_.fetch_add(kLoop);
  gate_.notify_all();
}

void ThreadPool::run_tasks(int64_t tasks, Call call, void* context) {
  tasks_ = tasks;
  call_ = call;
  context_ = context;
  callers_stop_ = own_stop;
  next_.store(0, std::memory_order_relaxed);
  gate_.fetch_add(kLoop + kOpen, std::memory_order_release);
  gate_.notify_all();
  take_tasks(0);
  gate_.fetch_sub(kOpen, std::memory_order_acq_rel);
  for (int spins = 0; (gate_.load(std::memory_order_acquire) & kInside) != 0; ++spins) {
    if (spins < 10000)
      pause_briefly();
    else
      std::this_thread::yield();
  }
  if (error_) std::rethrow_exception(std::exchange(error_, nullptr));
}

void ThreadPool::work(int thread) {
  uint64_t done = 0;  // the last loop this worker took part in
  auto idle_since = std::chrono::steady_clock::now();
  while (true) {
    // The gate first: the destructor moves it after setting stop_, so a worker that misses stop_ here sees
    // another gate than the one it waits on.
    uint64_t gate = gate_.load(std::memory_order_acquire);
    if (stop_.load()) return;
    if ((gate & kOpen) != 0 && gate / kLoop != done) {
      if (!gate_.compare_exchange_weak(gate, gate + kWorker, std::memory_order_acq_rel)) continue;
      done = gate / kLoop;
      take_tasks(thread);
      gate_.fetch_sub(kWorker, std::memory_order_release);
      idle_since = std::chrono::steady_clock::now();
      continue;
    }
    for (int i = 0; i < 16; ++i) pause_briefly();
    if (std::chrono::steady_clock::now() - idle_since <= kPatience) continue;
    gate_.wait(gate);
    // A worker may wake too late for this loop, but not for the next.
    idle_since = std::chrono::steady_clock::now();
  }
}

void ThreadPool::take_tasks(int thread) {
  own_stop = callers_stop_;
  for (int64_t task = 0; (task = next_.fetch_add(1, std::memory_order_relaxed)) < tasks_;) {
    try {
      call_(context_, task, thread);
    } catch (...) {
      const std::lock_guard lock(error_mutex_);
      if (!error_) error_ = std::current_exception();
      next_.store(tasks_, std::memory_order_relaxed);  // the others need not begin
    }
  }
}

}  // namespace sheaf
