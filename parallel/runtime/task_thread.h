#pragma once

#include <exception>
#include <functional>
#include <future>
#include <thread>

#include "muster/core/base/queue.h"

namespace muster {

/// The end of a task: what it threw, or null. The exception is handed over whole, so the thread that ran the
/// task keeps no share in it that it would let go of later.
using TaskEnd = std::future<std::exception_ptr>;

/// A thread that does what it is given, one task after the other, for as long as this lives.
class TaskThread {
 public:
  /// @param atEnd  done on the thread before it ends.
  explicit TaskThread(std::function<void()> atEnd = {});
  /// Waits for the tasks that were submitted.
  ~TaskThread();
  TaskThread(const TaskThread&) = delete;
  TaskThread& operator=(const TaskThread&) = delete;

  /// Thread-safe.
  TaskEnd submit(std::function<void()> task);

 private:
  BoundedQueue<std::packaged_task<std::exception_ptr()>> tasks_{4};
  std::jthread thread_;  // last: it ends before the queue does
};

}  // namespace muster
