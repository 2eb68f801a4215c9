#include "muster/parallel/runtime/rendezvous.h"

#include <doctest/doctest.h>

#include <atomic>
#include <chrono>
#include <stdexcept>
#include <thread>
#include <vector>

using namespace muster;
using Turn = Rendezvous::Turn;

namespace {

/// Sleep at once; spin for a while, then sleep; spin forever.
constexpr std::chrono::nanoseconds kPatiences[] = {std::chrono::nanoseconds(0), std::chrono::microseconds(3),
                                                   std::chrono::hours(1)};

std::vector<std::jthread> start(int threads, const std::function<void()>& body) {
  std::vector<std::jthread> all;
  for (int t = 0; t < threads; ++t) all.emplace_back(body);
  return all;
}

}  // namespace

TEST_CASE("all workers wait for the last one, which decides before any of them continues") {
  constexpr int kWorkers = 4, kRounds = 500;
  for (const auto patience : kPatiences) {
    Rendezvous rendezvous(kWorkers, patience);
    int counter = 0;  // unguarded: only the last worker changes it, while the others wait
    std::atomic<int> wrong{0};
    start(kWorkers, [&] {
      for (int round = 1; round <= kRounds; ++round) {
        if (!rendezvous.arrive([&] {
              ++counter;
              return Turn::Workers;
            }))
          ++wrong;
        if (counter != round) ++wrong;
        if (!rendezvous.arrive()) ++wrong;
      }
    }).clear();
    CHECK(wrong == 0);
    CHECK(counter == kRounds);
  }
}

TEST_CASE("a single worker never waits for others") {
  Rendezvous rendezvous(1);
  int ran = 0;
  for (int i = 0; i < 2; ++i)
    CHECK(rendezvous.arrive([&] {
      ++ran;
      return Turn::Workers;
    }));
  CHECK(ran == 2);
}

TEST_CASE("in the coordinator's turn all workers wait until it releases them") {
  constexpr int kWorkers = 3, kRounds = 300;
  for (const auto patience : kPatiences) {
    Rendezvous rendezvous(kWorkers, patience);
    int round = 0, turns = 0;  // unguarded: changed by the last worker, or in the coordinator's turn
    std::atomic<int> wrong{0}, passed{0};
    auto workers = start(kWorkers, [&] {
      for (int r = 1; r <= kRounds; ++r) {
        // Every third round has a turn of the coordinator.
        if (!rendezvous.arrive([&] { return ++round % 3 == 0 ? Turn::Coordinator : Turn::Workers; })) ++wrong;
        if (round != r || turns != r / 3) ++wrong;
        ++passed;
        if (!rendezvous.arrive()) ++wrong;
      }
    });
    for (int turn = 1; turn <= kRounds / 3; ++turn) {
      REQUIRE(rendezvous.await());
      CHECK(round == 3 * turn);
      CHECK(passed == kWorkers * (3 * turn - 1));  // none of this round
      ++turns;
      CHECK(rendezvous.release());
    }
    workers.clear();
    CHECK(wrong == 0);
  }
}

TEST_CASE("abort() wakes the workers that wait, and none waits afterwards") {
  for (const auto patience : kPatiences) {
    Rendezvous rendezvous(3, patience);
    std::atomic<int> refused{0};
    auto workers = start(2, [&] { refused += rendezvous.arrive() ? 0 : 1; });
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    rendezvous.abort();
    workers.clear();
    CHECK(refused == 2);
    int ran = 0;
    CHECK_FALSE(rendezvous.arrive([&] {
      ++ran;
      return Turn::Workers;
    }));
    CHECK(ran == 0);
  }
}

TEST_CASE("abort() wakes the coordinator that waits for its turn, and workers that wait for its end") {
  for (const auto patience : kPatiences) {
    Rendezvous rendezvous(2, patience);
    std::atomic<int> refused{0};
    auto workers = start(2, [&] { refused += rendezvous.arrive([] { return Turn::Coordinator; }) ? 0 : 1; });
    REQUIRE(rendezvous.await());
    std::jthread aborting([&] { rendezvous.abort(); });
    workers.clear();
    CHECK(refused == 2);
    CHECK_FALSE(rendezvous.release());
    CHECK_FALSE(rendezvous.await());

    Rendezvous other(2, patience);
    std::jthread late([&] { other.abort(); });
    CHECK_FALSE(other.await());
  }
}

TEST_CASE("an abort lets either all workers of a round pass or none") {
  for (int attempt = 0; attempt < 300; ++attempt) {
    Rendezvous rendezvous(3, kPatiences[attempt % 3]);
    std::atomic<int> passed{0};
    auto threads = start(3, [&] { passed += rendezvous.arrive() ? 1 : 0; });
    threads.emplace_back([&] { rendezvous.abort(); });
    threads.clear();
    CHECK((passed == 0 || passed == 3));
  }
}

TEST_CASE("the coordinator waits for all workers that it has released, also if they come after an abort") {
  for (int attempt = 0; attempt < 100; ++attempt) {
    Rendezvous rendezvous(3, kPatiences[attempt % 3]);
    std::atomic<int> visited{0};
    auto workers = start(3, [&] {
      if (!rendezvous.arrive([] { return Turn::Coordinator; })) return;
      std::this_thread::yield();
      ++visited;
      rendezvous.arrive([] { return Turn::Coordinator; });
    });
    REQUIRE(rendezvous.await());
    REQUIRE(rendezvous.release());
    std::jthread aborting([&] { rendezvous.abort(); });
    rendezvous.awaitArrivals();
    CHECK(visited == 3);
    aborting.join();
    CHECK_FALSE(rendezvous.release());
  }
}

TEST_CASE("a worker that fails when it decides leaves the others to an abort") {
  for (const auto patience : kPatiences) {
    Rendezvous rendezvous(2, patience);
    std::atomic<int> failed{0}, refused{0};
    start(2, [&] {
      try {
        if (!rendezvous.arrive([]() -> Turn { throw std::runtime_error("boom"); })) ++refused;
      } catch (const std::runtime_error&) {
        ++failed;
        rendezvous.abort();
      }
    }).clear();
    CHECK(failed == 1);
    CHECK(refused == 1);
  }
}
