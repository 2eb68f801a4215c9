#pragma once

#include <exception>
#include <functional>
#include <future>
#include <string_view>
#include <thread>
#include <vector>

#include "muster/core/base/error.h"
#include "muster/core/base/queue.h"
#include "muster/core/base/start_thread.h"

namespace muster {

/// A thread that runs the tasks given to it, one after the other, while this object lives.
class TaskThread {
 public:
  /// @param name  see startThread.
  /// @param atEnd  runs on the thread before it ends.
  explicit TaskThread(std::string_view name, std::function<void()> atEnd = {});
  /// Waits for the tasks that were started.
  ~TaskThread();
  TaskThread(const TaskThread&) = delete;
  TaskThread& operator=(const TaskThread&) = delete;

 private:
  friend class Tasks;
  /// A task moves the exception that it threw to the caller, so the thread holds no reference that it would
  /// release later.
  using Task = std::packaged_task<std::exception_ptr()>;

  BoundedQueue<Task> tasks_{4};
  std::jthread thread_;  // last: ends before the queue is destroyed
};

/// Tasks that run on several threads at once. They may refer to objects declared before this one: its
/// destructor waits for all started tasks. Used by one thread.
class Tasks {
 public:
  Tasks() = default;
  ~Tasks() { wait(); }
  Tasks(const Tasks&) = delete;
  Tasks& operator=(const Tasks&) = delete;

  /// Prepares a task. It runs once `start` is called.
  void add(TaskThread& thread, std::function<void()> task);
  /// Starts all tasks. Allocates nothing, so either all of them run or none: tasks may wait for each other.
  void start() noexcept;
  /// Waits for all tasks that were started.
  void wait() noexcept;
  /// Call it once, after `start`. Waits for all tasks. @return [task] what it threw, or null.
  std::vector<std::exception_ptr> failures();

 private:
  struct Entry {
    TaskThread& thread;
    TaskThread::Task task;  // invalid once started
    std::future<std::exception_ptr> end;
  };
  std::vector<Entry> entries_;
};

}  // namespace muster
