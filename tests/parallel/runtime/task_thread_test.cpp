#include "muster/parallel/runtime/task_thread.h"

#include <doctest/doctest.h>

#include <atomic>
#include <chrono>
#include <stdexcept>
#include <vector>

#include "muster/core/base/error.h"

using namespace muster;

TEST_CASE("tasks run in order on one thread, also more of them than the queue holds") {
  std::vector<int> order;
  std::vector<std::thread::id> threads;
  TaskThread thread("a test");
  Tasks tasks;
  for (int i = 0; i < 50; ++i)
    tasks.add(thread, [&, i] {
      order.push_back(i);
      threads.push_back(std::this_thread::get_id());
    });
  tasks.start();
  for (const auto& failure : tasks.failures()) CHECK(failure == nullptr);
  REQUIRE(order.size() == 50);
  for (int i = 0; i < 50; ++i) {
    CHECK(order[static_cast<std::size_t>(i)] == i);
    CHECK(threads[static_cast<std::size_t>(i)] == threads[0]);
  }
  CHECK(threads[0] != std::this_thread::get_id());
}

TEST_CASE("a task's exception is thrown at its end, and the next task runs") {
  TaskThread thread("a test");
  Tasks tasks;
  tasks.add(thread, [] { throw std::runtime_error("boom"); });
  tasks.add(thread, [] {});
  tasks.start();
  const auto failures = tasks.failures();
  REQUIRE(failures.size() == 2);
  CHECK(describe(failures[0]) == "boom");
  CHECK(failures[1] == nullptr);
}

TEST_CASE("at the end started tasks still run, then the last action, on that thread") {
  std::vector<std::string> done;
  std::thread::id ran, ended;
  Tasks tasks;
  {
    TaskThread thread("a test", [&] {
      done.push_back("end");
      ended = std::this_thread::get_id();
    });
    for (int i = 0; i < 3; ++i)
      tasks.add(thread, [&] {
        done.push_back("task");
        ran = std::this_thread::get_id();
      });
    tasks.start();
  }
  CHECK(done == std::vector<std::string>{"task", "task", "task", "end"});
  CHECK(ran == ended);
}

TEST_CASE("tasks that were never started do not run, and no thread waits for them") {
  TaskThread thread("a test");
  bool ran = false;
  {
    Tasks tasks;
    tasks.add(thread, [&] { ran = true; });
  }
  CHECK_FALSE(ran);
}

TEST_CASE("started tasks are waited for when an exception passes") {
  TaskThread first("a test"), second("a test");
  std::atomic<bool> done{false};
  try {
    Tasks tasks;
    tasks.add(first, [&] {
      std::this_thread::sleep_for(std::chrono::milliseconds(30));
      done = true;
    });
    tasks.start();
    throw std::runtime_error("no memory for the second");
  } catch (const std::runtime_error&) {
    CHECK(done);
  }
}
