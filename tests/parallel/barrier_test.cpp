#include "muster/parallel/runtime/barrier.h"

#include <doctest/doctest.h>

#include <atomic>
#include <chrono>
#include <stdexcept>
#include <thread>
#include <vector>

using namespace muster;

namespace {

/// Sleep at once; spin for a while, then sleep; spin forever.
constexpr std::chrono::nanoseconds kPatiences[] = {std::chrono::nanoseconds(0), std::chrono::microseconds(3),
                                                   std::chrono::hours(1)};

}  // namespace

TEST_CASE("all threads wait for the last one, which runs the action before any of them continues") {
  constexpr int kParties = 4, kRounds = 500;
  for (const auto patience : kPatiences) {
    Barrier barrier(kParties, patience);
    int counter = 0;  // unguarded: only the last thread changes it, while the others wait
    std::atomic<int> wrong{0};
    {
      std::vector<std::jthread> threads;
      for (int t = 0; t < kParties; ++t)
        threads.emplace_back([&] {
          for (int round = 1; round <= kRounds; ++round) {
            if (!barrier.arrive([&] { ++counter; })) ++wrong;
            if (counter != round) ++wrong;
            if (!barrier.arrive()) ++wrong;
          }
        });
    }
    CHECK(wrong == 0);
    CHECK(counter == kRounds);
  }
}

TEST_CASE("a barrier of one thread never waits") {
  Barrier barrier(1);
  int ran = 0;
  CHECK(barrier.arrive([&] { ++ran; }));
  CHECK(barrier.arrive([&] { ++ran; }));
  CHECK(ran == 2);
}

TEST_CASE("abort() wakes the threads that wait, and no thread waits afterwards") {
  for (const auto patience : kPatiences) {
    Barrier barrier(3, patience);
    std::atomic<int> refused{0};
    {
      std::vector<std::jthread> threads;
      for (int t = 0; t < 2; ++t) threads.emplace_back([&] { refused += barrier.arrive() ? 0 : 1; });
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
      barrier.abort();
    }
    CHECK(refused == 2);
    CHECK_FALSE(barrier.arrive());
    int ran = 0;
    CHECK_FALSE(barrier.arrive([&] { ++ran; }));
    CHECK(ran == 0);
  }
}

TEST_CASE("an abort lets either all threads of a round pass or none") {
  for (int attempt = 0; attempt < 300; ++attempt) {
    Barrier barrier(3, kPatiences[attempt % 3]);
    std::atomic<int> passed{0};
    {
      std::vector<std::jthread> threads;
      for (int t = 0; t < 3; ++t) threads.emplace_back([&] { passed += barrier.arrive() ? 1 : 0; });
      threads.emplace_back([&] { barrier.abort(); });
    }
    CHECK((passed == 0 || passed == 3));
  }
}

TEST_CASE("an exception of the action reaches only the thread that ran it, and an abort frees the others") {
  for (const auto patience : kPatiences) {
    Barrier barrier(2, patience);
    std::atomic<int> threw{0}, refused{0};
    const auto arrive = [&] {
      try {
        refused += barrier.arrive([] { throw std::runtime_error("action"); }) ? 0 : 1;
      } catch (const std::runtime_error&) {
        ++threw;
        barrier.abort();
      }
    };
    { std::jthread one(arrive), other(arrive); }
    CHECK(threw == 1);
    CHECK(refused == 1);
  }
}
