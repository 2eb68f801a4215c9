#include "muster/core/data/epoch_order.h"

#include "tests/support/test.h"

namespace muster::test {
namespace {

using Order = std::vector<std::int64_t>;

Order orderOf(EpochOrder& order) {
  const auto all = order.take(order.count());
  return {all.begin(), all.end()};
}

Order orderOf(std::int64_t count, std::uint64_t seed, std::int64_t epoch) {
  EpochOrder order(count, seed);
  order.reset(epoch);
  return orderOf(order);
}

TEST_CASE("without a seed the examples of every epoch are in their stored order") {
  EpochOrder order(4, std::nullopt);
  for (const std::int64_t epoch : {3, 4}) {
    CHECK(orderOf(order) == Order{0, 1, 2, 3});
    order.reset(epoch);
  }
}

TEST_CASE("shuffles equal those of base/random_golden.py") {
  CHECK(orderOf(10, 12345, 0) == Order{4, 5, 9, 3, 1, 2, 7, 6, 8, 0});
  CHECK(orderOf(10, 12345, 1) == Order{3, 0, 1, 6, 9, 2, 8, 5, 7, 4});
  CHECK(orderOf(10, 12345, 7) == Order{8, 2, 9, 5, 4, 1, 7, 3, 6, 0});
}

TEST_CASE("an epoch's order does not depend on the epochs before it") {
  EpochOrder order(50, 9);
  CHECK(orderOf(order) == orderOf(50, 9, 0));  // starts at epoch 0
  order.reset(1);
  order.take(7);
  order.reset(5);
  CHECK(orderOf(order) == orderOf(50, 9, 5));
  CHECK(orderOf(50, 9, 5) != orderOf(50, 9, 6));
  CHECK(orderOf(50, 9, 5) != orderOf(50, 10, 5));
}

TEST_CASE("a shuffle contains every example once") {
  const auto order = orderOf(1001, 1, 2);
  const std::set<std::int64_t> once(order.begin(), order.end());
  CHECK(textOf(order.size(), once.size(), *once.begin(), *once.rbegin()) == "1001 1001 0 1000");
}

TEST_CASE("every permutation is as likely as every other") {
  std::map<Order, double> counts;
  constexpr int kTimes = 24000;
  for (int epoch = 0; epoch < kTimes; ++epoch) ++counts[orderOf(4, 77, epoch)];
  REQUIRE(counts.size() == 24);
  double chiSquare = 0;
  for (const auto& [order, count] : counts) chiSquare += (count - 1000) * (count - 1000) / 1000;
  CHECK(chiSquare < 56);  // 23 degrees of freedom: exceeded less than once in 5,000
}

TEST_CASE("take() returns the remaining examples, then none") {
  EpochOrder order(5, std::nullopt);
  CHECK(order.take(3).size() == 3);
  CHECK(order.remaining() == 2);
  const auto rest = order.take(3);
  CHECK(Order(rest.begin(), rest.end()) == Order{3, 4});
  CHECK(order.take(3).empty());
  CHECK(order.take(std::numeric_limits<std::int64_t>::max()).empty());
}

TEST_CASE("an order of no example or one is valid, a negative number is refused") {
  CHECK(orderOf(0, 1, 1).empty());
  CHECK(orderOf(1, 1, 1) == Order{0});
  CHECK_THROWS_AS(EpochOrder(-1, std::nullopt), InvalidArgument);
}

}  // namespace
}  // namespace muster::test
