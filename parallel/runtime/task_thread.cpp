#include "muster/parallel/runtime/task_thread.h"

namespace muster {

TaskThread::TaskThread(std::function<void()> atEnd)
    : thread_([this, atEnd = std::move(atEnd)] {
        while (auto task = tasks_.pop()) (*task)();
        if (atEnd) atEnd();
      }) {}

TaskThread::~TaskThread() {
  tasks_.close();
}

TaskEnd TaskThread::submit(std::function<void()> task) {
  std::packaged_task<std::exception_ptr()> packaged([task = std::move(task)]() -> std::exception_ptr {
    try {
      task();
      return nullptr;
    } catch (...) {
      return std::current_exception();
    }
  });
  auto end = packaged.get_future();
  tasks_.push(std::move(packaged));
  return end;
}

}  // namespace muster
