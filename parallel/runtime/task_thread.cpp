#include "muster/parallel/runtime/task_thread.h"

#include "muster/core/device/arithmetic_scope.h"

namespace muster {

TaskThread::TaskThread(std::string_view name, std::function<void()> atEnd)
    : thread_(startThread(name, [this, atEnd = std::move(atEnd)] {
        const ArithmeticScope arithmetic;
        while (auto task = tasks_.pop()) (*task)();
        if (atEnd) atEnd();
      })) {}

TaskThread::~TaskThread() {
  tasks_.close();
}

void Tasks::add(TaskThread& thread, std::function<void()> task) {
  TaskThread::Task packaged([task = std::move(task)]() -> std::exception_ptr {
    try {
      task();
      return nullptr;
    } catch (...) {
      return std::current_exception();
    }
  });
  auto end = packaged.get_future();
  entries_.push_back({thread, std::move(packaged), std::move(end)});
}

void Tasks::start() noexcept {
  for (auto& [thread, task, end] : entries_)
    if (task.valid()) thread.tasks_.push(std::move(task));
}

void Tasks::wait() noexcept {
  for (auto& [thread, task, end] : entries_)
    if (!task.valid() && end.valid()) end.wait();
}

std::vector<std::exception_ptr> Tasks::failures() {
  wait();
  std::vector<std::exception_ptr> failures(entries_.size());
  for (std::size_t i = 0; i < entries_.size(); ++i) failures[i] = entries_[i].end.get();
  return failures;
}

}  // namespace muster
