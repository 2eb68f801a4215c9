#include "muster/core/device/context.h"

#include <omp.h>
#include <sched.h>
#include <unistd.h>

#include "muster/core/backend/cpu/parallel.h"
#include "tests/support/child_process.h"
#include "tests/support/skip.h"
#include "tests/support/test.h"

namespace muster {
namespace {

/// The calling thread's cores, read from the system and not through the library.
std::vector<int> coresNow() {
  cpu_set_t set;
  CPU_ZERO(&set);
  REQUIRE(sched_getaffinity(0, sizeof set, &set) == 0);
  std::vector<int> cores;
  for (int core = 0; core < CPU_SETSIZE; ++core)
    if (CPU_ISSET(core, &set)) cores.push_back(core);
  return cores;
}

TEST_CASE("a context has the number of threads that it was given") {
  Context one;
  CHECK(one.threads() == 1);
  CHECK(one.device().isCpu());
  Context three(Device::cpu(), {.threads = 3});
  CHECK(three.threads() == 3);
}

TEST_CASE("a scope sets the calling thread's OpenMP threads and restores them") {
  omp_set_num_threads(5);
  Context context(Device::cpu(), {.threads = 7});
  {
    ContextScope scope(context);
    CHECK(omp_get_max_threads() == 7);
    int other = 0;
    std::thread([&] { other = omp_get_max_threads(); }).join();
    CHECK(other != 7);
  }
  CHECK(omp_get_max_threads() == 5);
}

TEST_CASE("a pinned context sets the thread's affinity and restores it") {
  const auto before = coresNow();
  const int core = before.back();
  {
    Context context(Device::cpu(), {.threads = 1, .cores = {core}});
    CHECK(coresNow() == std::vector<int>{core});
    CHECK(context.cores() == std::vector<int>{core});
  }
  CHECK(coresNow() == before);
}

TEST_CASE("a thread that inherited another thread's core can be pinned to other cores") {
  const auto before = coresNow();
  if (before.size() < 2) return test::skip("needs two cores");
  Context outer(Device::cpu(), {.cores = {before[0]}});
  std::vector<int> inside, after;
  std::thread([&] {
    {
      Context inner(Device::cpu(), {.cores = {before[1]}});
      inside = coresNow();
    }
    after = coresNow();
  }).join();
  CHECK(inside == std::vector<int>{before[1]});
  CHECK(after == std::vector<int>{before[0]});
}

TEST_CASE("the threads of a pinned context's loops are pinned too") {
  const auto before = coresNow();
  if (before.size() < 2) return test::skip("needs two cores");
  Context free(Device::cpu(), {.threads = 2});
  cpu::parallelFor(free, 2, 1, [](std::int64_t, std::int64_t) {});  // the pool exists before the pinning
  Context pinned(Device::cpu(), {.threads = 2, .cores = {before[1]}});
  std::vector<std::vector<int>> seen(2);
  cpu::parallelFor(pinned, 2, 1, [&](std::int64_t begin, std::int64_t) {
    seen[static_cast<std::size_t>(begin)] = coresNow();
  });
  CHECK(seen[0] == std::vector<int>{before[1]});
  CHECK(seen[1] == std::vector<int>{before[1]});
}

TEST_CASE("a child of fork() cannot compute with its parent's threads, but with one, or on a new thread") {
  Context two(Device::cpu(), {.threads = 2});
  const auto said = test::inChild([&] {
    ::alarm(20);  // ends a child that hangs
    std::string all;
    const auto add = [&](auto call) { all += test::thrown<InvalidArgument>(call) + "\n"; };
    add([&] { const ContextScope scope(two); });
    add([&] { const Context another(Device::cpu(), {.threads = 2}); });
    Context one;
    const ContextScope scope(one);
    std::thread([&] {
      Context again(Device::cpu(), {.threads = 2});
      std::atomic<int> runs{0};
      cpu::parallelFor(again, 2, 1, [&](std::int64_t, std::int64_t) { ++runs; });
      all += std::to_string(runs);
    }).join();
    return all;
  });
  CHECK(said.starts_with("context: this process is a child of the one in which this thread computed"));
  CHECK(std::ranges::count(said, '\n') == 2);
  CHECK(said.ends_with("\n2"));
}

TEST_CASE("a pinned context of a child of fork() can be destroyed there") {
  std::optional<Context> two(std::in_place, Device::cpu(),
                             ContextOptions{.threads = 2, .cores = {coresNow()[0]}});
  CHECK(test::inChild([&] {
          ::alarm(20);
          two.reset();
          return std::string("destroyed");
        }) == "destroyed");
}

TEST_CASE("invalid options of a context are refused") {
  CHECK_REFUSED(Context(Device::cpu(), {.threads = 0}), "context: expected at least 1 thread, got 0");
  const auto before = coresNow();
  CHECK_THROWS_AS(Context(Device::cpu(), {.cores = {-1}}), InvalidArgument);
  CHECK_THROWS_AS(Context(Device::cpu(), {.cores = {before[0], CPU_SETSIZE - 1}}), InvalidArgument);
  CHECK_THROWS_AS(Context(Device::cpu(), {.cores = {CPU_SETSIZE}}), InvalidArgument);
  CHECK(coresNow() == before);
}

TEST_CASE("parallelFor covers every index once, in parts that begin at multiples of the grain") {
  for (int threads : {1, 2, 3, 4})
    for (std::int64_t count : {0, 1, 7, 64, 1000})
      for (std::int64_t grain : {1, 8, 64}) {
        Context context(Device::cpu(), {.threads = threads});
        std::vector<std::atomic<int>> visits(static_cast<std::size_t>(count));
        std::atomic<int> misaligned{0};
        cpu::parallelFor(context, count, grain, [&](std::int64_t begin, std::int64_t end) {
          if (begin % grain != 0) ++misaligned;
          for (auto i = begin; i < end; ++i) ++visits[static_cast<std::size_t>(i)];
        });
        CHECK(misaligned == 0);
        for (auto& visit : visits) CHECK(visit == 1);
      }
}

}  // namespace
}  // namespace muster
