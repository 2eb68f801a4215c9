#include "muster/parallel/runtime/peer_sums.h"

#include <future>

#include "tests/support/thrown.h"

using namespace muster;
using namespace std::chrono_literals;

namespace {

using Values = std::vector<double>;

/// Calls a worker's `sum` on a new thread. @return the sums, and the failure's text if it fails.
std::future<std::pair<Values, std::string>> summed(PeerSums& exchange, int worker, Values values) {
  return std::async(std::launch::async, [&exchange, worker, values = std::move(values)]() mutable {
    auto problem = test::thrown<PeerFailure>([&] { exchange.sum(worker, values); });
    return std::pair(values, problem);
  });
}

bool waits(const std::future<std::pair<Values, std::string>>& result) {
  return result.wait_for(30ms) == std::future_status::timeout;
}

}  // namespace

TEST_CASE("neighbours are added up first, then their sums") {
  PeerSums exchange(5, /*together=*/2);
  const double own[] = {1e16, 1, -1e16, 1, 2};
  std::vector<std::future<std::pair<Values, std::string>>> results;
  for (int worker = 0; worker < 5; ++worker) results.push_back(summed(exchange, worker, {own[worker]}));
  const double expected = ((1e16 + 1) + (-1e16 + 1)) + 2;
  CHECK(expected == 2);  // in one sum it would be 3
  for (auto& result : results) CHECK(result.get().first == Values{expected});
}

TEST_CASE("every worker gets the sums, added in worker order whatever the order of arrival") {
  // 1e16 + 1 rounds to 1e16 in float64, so another order gives another sum.
  const Values own[] = {{1e16, 1}, {1, 2}, {-1e16, 3}};
  const Values expected{(1e16 + 1) - 1e16, 6};
  CHECK(expected[0] == 0);
  for (const std::vector<int>& order : {std::vector{0, 1, 2}, {2, 0, 1}, {1, 2, 0}}) {
    PeerSums exchange(3);
    for (int repeat = 0; repeat < 3; ++repeat) {
      std::vector<std::future<std::pair<Values, std::string>>> results;
      for (const int worker : order) {
        results.push_back(summed(exchange, worker, own[worker]));
        if (results.size() < 3) CHECK(waits(results.back()));
      }
      for (auto& result : results) CHECK(result.get().first == expected);
    }
  }
}

TEST_CASE("no worker waits for one that has left, until the next begin()") {
  PeerSums exchange(3);
  auto first = summed(exchange, 0, {1}), second = summed(exchange, 2, {4});
  CHECK(waits(first));
  exchange.leave(1);
  exchange.leave(1);  // repeating it changes nothing
  CHECK(first.get().first == Values{5});
  CHECK(second.get().first == Values{5});
  exchange.leave(2);
  Values alone{7};
  exchange.sum(0, alone);
  CHECK(alone == Values{7});
  exchange.beginAll();
  auto again = summed(exchange, 0, {1}), other = summed(exchange, 1, {2});
  CHECK(waits(again));
  auto last = summed(exchange, 2, {3});
  CHECK(again.get().first == Values{6});
  CHECK(other.get().first == Values{6});
  CHECK(last.get().first == Values{6});
  exchange.begin(1);
  exchange.sum(0, alone);
  CHECK(alone == Values{7});
}

TEST_CASE("an abort wakes all workers, and lasts until the next begin()") {
  PeerSums exchange(2);
  auto waiting = summed(exchange, 1, {1});
  CHECK(waits(waiting));
  exchange.abort();
  CHECK(waiting.get().second == "another worker failed while this one waited for it");
  CHECK(summed(exchange, 0, {1}).get().second == "another worker failed while this one waited for it");
  exchange.beginAll();
  auto first = summed(exchange, 0, {1}), second = summed(exchange, 1, {2});
  CHECK(first.get().first == Values{3});
  CHECK(second.get().first == Values{3});
}

TEST_CASE("different numbers of values fail for all workers") {
  PeerSums exchange(2);
  auto first = summed(exchange, 0, {1, 2}), second = summed(exchange, 1, {1});
  CHECK(first.get().second == "workers of one step must sum equally many values, not 2 and 1 values");
  CHECK(second.get().second == "workers of one step must sum equally many values, not 2 and 1 values");
}
