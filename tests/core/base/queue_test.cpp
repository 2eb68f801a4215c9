#include "muster/core/base/queue.h"

#include <malloc.h>
#include <sys/resource.h>

#include <numeric>

#include "tests/support/allocations.h"
#include "tests/support/child_process.h"
#include "tests/support/sanitizers.h"
#include "tests/support/skip.h"
#include "tests/support/test.h"

namespace muster {
namespace {

using namespace std::chrono_literals;

constexpr auto kAWhile = 30ms;  // long enough for a thread to reach its wait, nearly always

// Must run first, because threads of an earlier case leave memory to later threads.
TEST_CASE("a queue loses no items when the process is out of memory") {
  if (test::kSanitized) return test::skip("sanitizers need the address space for themselves");
  const std::string outcome = test::inChild([] {
    ::alarm(10);                // ends a child that hangs
    ::mallopt(M_ARENA_MAX, 1);  // threads have no memory of their own
    BoundedQueue<int> queue(4);
    std::atomic<bool> go{false};
    std::atomic<int> pushed{0};
    std::vector<std::jthread> threads;
    for (int t = 0; t < 4; ++t)
      threads.emplace_back([&, t] {
        while (!go) std::this_thread::yield();
        queue.push(t);
        ++pushed;
      });
    int sink = 0;
    const rlimit now{0, 0};
    ::setrlimit(RLIMIT_AS, &now);  // no more than it has
    for (std::size_t bytes = 1 << 20; bytes > 0; bytes /= 2)
      for (void* volatile taken = &sink; taken != nullptr;)
        taken = std::malloc(bytes);  // NOLINT: the child ends
    go = true;
    threads.clear();
    int sum = 0;
    for (int t = 0; t < pushed; ++t) sum += *queue.pop();
    return std::string(1, static_cast<char>('0' + sum));
  });
  CHECK(outcome == "6");
}

TEST_CASE("a queue has room for at least one item") {
  CHECK_THROWS_AS(BoundedQueue<int>(0), InvalidArgument);
}

TEST_CASE("push waits while the queue is full") {
  BoundedQueue<int> queue(2);
  std::atomic<int> pushed{0};
  std::jthread producer([&] {
    for (int i = 1; i <= 3; ++i) {
      queue.push(i);
      pushed = i;
    }
  });
  while (pushed < 2) std::this_thread::yield();
  std::this_thread::sleep_for(kAWhile);
  CHECK(pushed == 2);
  CHECK(queue.pop() == 1);
  producer.join();
  CHECK(pushed == 3);
  CHECK(queue.pop() == 2);
  CHECK(queue.pop() == 3);
}

TEST_CASE("pop waits while the queue is empty; items may be move-only") {
  BoundedQueue<std::unique_ptr<int>> queue(1);
  CHECK_FALSE(queue.tryPop());
  std::atomic<int> popped{0};
  std::jthread consumer([&] { popped = *queue.pop().value(); });
  std::this_thread::sleep_for(kAWhile);
  CHECK(popped == 0);
  queue.push(std::make_unique<int>(7));
  consumer.join();
  CHECK(popped == 7);
}

TEST_CASE("close() wakes every producer and every consumer that waits") {
  BoundedQueue<int> full(1), empty(1);
  full.push(1);
  std::atomic<int> refused{0}, ended{0};
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < 3; ++i) {
      threads.emplace_back([&] { refused += full.push(2) ? 0 : 1; });
      threads.emplace_back([&] { ended += empty.pop() ? 0 : 1; });
    }
    std::this_thread::sleep_for(kAWhile);
    full.close();
    empty.close();
  }
  CHECK(refused == 3);
  CHECK(ended == 3);
  CHECK(full.pop() == 1);
  CHECK_FALSE(full.pop());
}

TEST_CASE("a closed queue accepts no items, and its remaining items are popped once") {
  BoundedQueue<int> queue(4);
  queue.push(1);
  queue.push(2);
  queue.close();
  queue.close();
  CHECK(queue.closed());
  CHECK_FALSE(queue.push(3));
  CHECK(queue.pop() == 1);
  CHECK(queue.tryPop() == 2);
  CHECK_FALSE(queue.tryPop());
  CHECK_FALSE(queue.pop());
  CHECK_FALSE(queue.pop());
  CHECK_FALSE(queue.push(4));
}

TEST_CASE(
    "with many producers and consumers a queue loses and duplicates no item, and keeps each producer's "
    "order") {
  constexpr int kProducers = 4, kConsumers = 3, kEach = 3000;
  BoundedQueue<int> queue(5);
  std::vector<std::vector<int>> taken(kConsumers);  // [consumer]
  std::vector<std::jthread> consumers;
  for (int c = 0; c < kConsumers; ++c)
    consumers.emplace_back([&, c] {
      while (const auto item = queue.pop()) taken[static_cast<std::size_t>(c)].push_back(*item);
    });
  {
    std::vector<std::jthread> producers;
    for (int p = 0; p < kProducers; ++p)
      producers.emplace_back([&, p] {
        for (int i = 0; i < kEach; ++i) queue.push(p * kEach + i);
      });
  }
  queue.close();
  consumers.clear();

  std::vector<int> all;
  for (const auto& items : taken) {
    std::vector<int> last(kProducers, -1);  // [producer]
    for (const int item : items) {
      auto& before = last[static_cast<std::size_t>(item / kEach)];
      REQUIRE(before < item);
      before = item;
    }
    all.insert(all.end(), items.begin(), items.end());
  }
  std::vector<int> expected(kProducers * kEach);
  std::iota(expected.begin(), expected.end(), 0);
  std::ranges::sort(all);
  CHECK(all == expected);
}

TEST_CASE("every item that was pushed is popped, also while the queue is being closed") {
  for (int round = 0; round < 200; ++round) {
    BoundedQueue<int> queue(2);
    std::atomic<int> accepted{0}, popped{0};
    {
      std::vector<std::jthread> threads;
      for (int i = 0; i < 2; ++i) {
        threads.emplace_back([&] {
          while (queue.push(1)) ++accepted;
        });
        threads.emplace_back([&] {
          while (queue.pop()) ++popped;
        });
      }
      std::this_thread::sleep_for(std::chrono::microseconds(20 * (round % 7)));
      queue.close();
    }
    CHECK(accepted == popped);
  }
}

TEST_CASE("a queue allocates nothing after its construction, whichever threads use it") {
  BoundedQueue<int> queue(70);
  constexpr int kThreads = 4, kEach = 2000;
  std::atomic<bool> go{false};
  std::atomic<int> popped{0};
  std::vector<std::jthread> threads;
  for (int t = 0; t < kThreads; ++t)
    threads.emplace_back([&] {
      while (!go) std::this_thread::yield();
      for (int i = 0; i < kEach; ++i) queue.push(i);
    });
  threads.emplace_back([&] {
    for (; popped < kThreads * kEach; ++popped) queue.pop();
  });
  const test::FailingAllocations none(0, test::FailingAllocations::Lasting::Yes);
  go = true;
  threads.clear();
  CHECK(popped == kThreads * kEach);
  CHECK_FALSE(none.any());
}

TEST_CASE("a queue that gets no memory at its construction throws an exception") {
  for (long nth = 0;; ++nth) {
    const test::FailingAllocations one(nth);
    try {
      BoundedQueue<int> queue(70);
      if (!one.any()) break;
      for (int i = 0; i < 70; ++i) queue.push(i);  // it could do without
      for (int i = 0; i < 70; ++i) CHECK(queue.pop() == i);
    } catch (const std::bad_alloc&) {
      CHECK(one.any());
    }
  }
}

}  // namespace
}  // namespace muster
