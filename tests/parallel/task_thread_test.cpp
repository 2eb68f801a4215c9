#include "muster/parallel/runtime/task_thread.h"

#include <doctest/doctest.h>

#include <stdexcept>
#include <vector>

#include "muster/core/base/error.h"

using namespace muster;

TEST_CASE("tasks run in order, on one thread, and more of them than the queue holds") {
  std::vector<int> order;
  std::vector<std::thread::id> threads;
  std::vector<TaskEnd> ends;
  TaskThread thread;
  for (int i = 0; i < 50; ++i)
    ends.push_back(thread.submit([&, i] {
      order.push_back(i);
      threads.push_back(std::this_thread::get_id());
    }));
  for (auto& end : ends) CHECK(end.get() == nullptr);
  REQUIRE(order.size() == 50);
  for (int i = 0; i < 50; ++i) {
    CHECK(order[static_cast<std::size_t>(i)] == i);
    CHECK(threads[static_cast<std::size_t>(i)] == threads[0]);
  }
  CHECK(threads[0] != std::this_thread::get_id());
}

TEST_CASE("what a task throws comes out at its end, and the next task runs") {
  TaskThread thread;
  auto bad = thread.submit([] { throw std::runtime_error("boom"); });
  auto good = thread.submit([] {});
  CHECK(describe(bad.get()) == "boom");
  CHECK(good.get() == nullptr);
}

TEST_CASE("at the end, tasks that were submitted still run, then the last action, on that thread") {
  std::vector<std::string> done;
  std::thread::id ran, ended;
  {
    TaskThread thread([&] {
      done.push_back("end");
      ended = std::this_thread::get_id();
    });
    for (int i = 0; i < 3; ++i)
      thread.submit([&] {
        done.push_back("task");
        ran = std::this_thread::get_id();
      });
  }
  CHECK(done == std::vector<std::string>{"task", "task", "task", "end"});
  CHECK(ran == ended);
}
