#include "muster/parallel/training/arrival_order.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <random>
#include <string>

#include "muster/parallel/strategies/strategy_traits.h"

using namespace muster;

namespace {

constexpr double kForever = std::numeric_limits<double>::infinity();

ArrivalPlan planOf(std::vector<double> speeds, std::int64_t iterations, double grace = 0,
                   std::int64_t staleness = ArrivalPlan::kUnbounded) {
  const std::vector<std::int64_t> each(speeds.size(), iterations);
  return {.iterations = each, .speeds = std::move(speeds), .grace = grace, .staleness = staleness};
}

/// The workers that get the first batches.
std::string deals(const ArrivalPlan& plan, int count) {
  ArrivalOrder order(plan);
  std::string text;
  for (int i = 0; i < count; ++i) text += std::to_string(order.deal());
  return text;
}

/// For example "2.00: 3 1 +0 >0": time 2; batches per worker since the previous landing; worker 0 arrives and
/// continues.
std::string landing(ArrivalOrder& order) {
  order.land();
  std::string batches, who;
  for (std::size_t w = 0; w < order.dealt().size(); ++w) {
    batches += fmt::format(" {}", order.dealt()[w]);
    const Arrival& arrival = order.arrivals()[w];
    if (arrival.arrives) who += fmt::format(" +{}", w);
    if (arrival.resumes) who += fmt::format(" >{}", w);
  }
  return fmt::format("{:.2f}:{}{}", order.time(), batches, who);
}

std::vector<std::string> landings(const ArrivalPlan& plan, int count) {
  ArrivalOrder order(plan);
  std::vector<std::string> all;
  for (int i = 0; i < count; ++i) all.push_back(landing(order));
  return all;
}

using Landings = std::vector<std::string>;

}  // namespace

TEST_CASE("equal workers get batches in turn and land one after another") {
  CHECK(deals(planOf({1, 1, 1}, 2), 12) == "012012012012");
  CHECK(landings(planOf({1, 1, 1}, 2), 4) ==
        Landings{"2.00: 2 2 2 +0 >0", "2.00: 0 0 0 +1 >1", "2.00: 0 0 0 +2 >2", "4.00: 2 2 2 +0 >0"});
}

TEST_CASE("a worker of half the speed gets half the batches and arrives half as often") {
  CHECK(deals(planOf({2, 1}, 2), 9) == "010010010");
  CHECK(landings(planOf({2, 1}, 2), 4) ==
        Landings{"1.00: 2 1 +0 >0", "2.00: 2 1 +0 >0", "2.00: 0 0 +1 >1", "3.00: 2 1 +0 >0"});
}

TEST_CASE("a slow worker with fewer iterations arrives with the fast one") {
  auto plan = planOf({2, 1}, 2);
  plan.iterations[1] = 1;
  CHECK(landings(plan, 3) == Landings{"1.00: 2 1 +0 >0", "1.00: 0 0 +1 >1", "2.00: 2 1 +0 >0"});
}

TEST_CASE("arrivals within the grace period land together") {
  // The workers arrive at 1, 1.6 and 2.
  CHECK(landings(planOf({2, 1.25, 1}, 2, 0.75), 1) == Landings{"1.75: 2 2 2 +0 >0 +1 >1"});
  // Worker 0 continues at 1.5 and arrives at 2.5, just too late for worker 1, which arrived at 2.
  CHECK(landings(planOf({2, 1}, 2, 0.5), 3) ==
        Landings{"1.50: 2 2 +0 >0", "2.50: 2 0 +1 >1", "3.00: 0 1 +0 >0"});
  // All workers have arrived at 2, so they do not wait until 2.5.
  for (const double grace : {1.5, kForever})
    CHECK(landings(planOf({2, 1}, 2, grace), 2) ==
          Landings{"2.00: 2 2 +0 >0 +1 >1", "4.00: 2 2 +0 >0 +1 >1"});
  CHECK(landings(planOf({1, 1, 1}, 2, kForever), 2) ==
        Landings{"2.00: 2 2 2 +0 >0 +1 >1 +2 >2", "4.00: 2 2 2 +0 >0 +1 >1 +2 >2"});
}

TEST_CASE("with staleness 0 all workers wait for all, and with 1 a worker is at most one arrival ahead") {
  CHECK(landings(planOf({3, 1}, 1, 0, 0), 2) == Landings{"1.00: 1 1 +0 >0 +1 >1", "2.00: 1 1 +0 >0 +1 >1"});
  CHECK(landings(planOf({4, 1}, 1, 0, 1), 4) ==
        Landings{"0.25: 1 1 +0 >0", "1.00: 1 0 +0", "1.00: 0 0 >0 +1 >1", "2.00: 1 1 +0"});
}

TEST_CASE("a worker that has landed may still wait for the slowest one") {
  // At time 1, worker 1 may continue (it has arrived once, worker 2 never); worker 0, which has arrived
  // twice, may not.
  CHECK(landings(planOf({4, 1, 0.5}, 1, 0, 1), 5) == Landings{"0.25: 1 1 1 +0 >0", "1.00: 1 0 0 +0",
                                                              "1.00: 0 0 0 +1 >1", "2.00: 0 1 0 +1",
                                                              "2.00: 0 0 0 >0 >1 +2 >2"});
}

TEST_CASE("the next landing is found at once, however many iterations come before it") {
  CHECK(landings(planOf({2, 1}, std::int64_t{1} << 40), 1) ==
        Landings{"549755813888.00: 1099511627776 549755813888 +0 >0"});
}

TEST_CASE("every epoch has the same order of batches and arrivals") {
  const auto plan = planOf({0.58, 0.75, 1.51, 3.33}, 3, 0.2, 2);
  ArrivalOrder order(plan);
  std::vector<int> first, second;
  for (int i = 0; i < 40; ++i) first.push_back(order.deal());
  order.restart(0, 0);
  for (int i = 0; i < 40; ++i) second.push_back(order.deal());
  CHECK(second == first);
}

TEST_CASE("for any speeds batches and landings match, and the bound on staleness holds") {
  std::mt19937_64 random(1);
  std::uniform_real_distribution<double> speed(0.1, 4), grace(0, 3);
  for (int trial = 0; trial < 50; ++trial) {
    CAPTURE(trial);
    const std::size_t workers = 1 + random() % 6;
    ArrivalPlan plan{.grace = trial % 3 == 0 ? 0 : grace(random),
                     .staleness = static_cast<std::int64_t>(random() % 4)};
    for (std::size_t w = 0; w < workers; ++w) {
      plan.speeds.push_back(speed(random));
      plan.iterations.push_back(1 + static_cast<std::int64_t>(random() % 5));
    }
    ArrivalOrder dealing(plan), landing(plan);
    std::vector<std::int64_t> batches(workers), arrived(workers);
    double before = 0;
    for (int i = 0; i < 60; ++i) {
      landing.land();
      REQUIRE(landing.time() >= before);
      before = landing.time();
      std::vector<std::int64_t> dealt(workers);
      std::int64_t sum = 0;
      for (const auto count : landing.dealt()) sum += count;
      for (; sum > 0; --sum) ++dealt[static_cast<std::size_t>(dealing.deal())];
      CHECK(dealt == std::vector(landing.dealt().begin(), landing.dealt().end()));
      for (std::size_t w = 0; w < workers; ++w) {
        batches[w] += dealt[w];
        arrived[w] += landing.arrivals()[w].arrives ? 1 : 0;
      }
      const auto slowest = std::ranges::min(arrived);
      for (std::size_t w = 0; w < workers; ++w) {
        if (landing.arrivals()[w].arrives) CHECK(batches[w] == arrived[w] * plan.iterations[w]);
        if (landing.arrivals()[w].resumes) CHECK(arrived[w] - slowest <= plan.staleness);
      }
    }
  }
}
