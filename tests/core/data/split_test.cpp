#include "muster/core/data/split.h"

#include <numeric>

#include "tests/support/test.h"

namespace muster::test {
namespace {

using Rows = std::vector<std::int64_t>;

/// So many examples of class 0, 1, ..., in order of their classes.
Rows inOrder(std::initializer_list<std::int64_t> sizes) {
  Rows classes;
  for (std::int64_t c = 0; const auto size : sizes)
    classes.insert(classes.end(), static_cast<std::size_t>(size), c++);
  return classes;
}

/// How many of these rows have each class.
Rows countsOf(const Rows& rows, const Rows& classes) {
  Rows counts(static_cast<std::size_t>(*std::ranges::max_element(classes)) + 1);
  for (const auto row : rows) ++counts[static_cast<std::size_t>(classes[static_cast<std::size_t>(row)])];
  return counts;
}

Rows numbers(std::int64_t count) {
  Rows all(static_cast<std::size_t>(count));
  std::iota(all.begin(), all.end(), std::int64_t{0});
  return all;
}

TEST_CASE("both parts of a split have the classes in equal shares, whatever the order of the examples") {
  // Shares of 60 of 100: 30, 24.6, 5.4; the row that rounding leaves goes to the largest remainder.
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    const auto classes = inOrder({50, 41, 9});
    const auto parts = splitRows(classes, 60, seed);
    CHECK(countsOf(parts.first, classes) == Rows{30, 25, 5});
    CHECK(countsOf(parts.second, classes) == Rows{20, 16, 4});
    CHECK((std::ranges::is_sorted(parts.first) && std::ranges::is_sorted(parts.second)));
    Rows joined;
    std::ranges::merge(parts.first, parts.second, std::back_inserter(joined));
    CHECK(joined == numbers(100));
  }
}

TEST_CASE("a split is drawn by its seed") {
  const auto classes = inOrder({100, 100});
  const auto one = splitRows(classes, 100, 1);
  CHECK(one.first == splitRows(classes, 100, 1).first);
  CHECK(one.first != splitRows(classes, 100, 2).first);
  CHECK(splitRows(50, 40, 1).first.size() == 40);
  Rows often(10);  // each row is in the first half about as often: binomial(1000, 0.5) within 6 deviations
  for (std::uint64_t seed = 0; seed < 1000; ++seed)
    for (const auto row : splitRows(10, 5, seed).first) ++often[static_cast<std::size_t>(row)];
  for (const auto count : often) CHECK(std::abs(count - 500) < 95);
}

TEST_CASE("the seed draws which of equal classes have an example in a part that has fewer than there are") {
  const auto classes = inOrder({4, 4, 4, 4, 4, 4});  // of 22 to train with: 3.67 each
  Rows often(6);  // of 1000 seeds with 2 of 6 classes each: binomial(1000, 1/3) within 6 deviations of 14.9
  for (std::uint64_t seed = 0; seed < 1000; ++seed) {
    const auto parts = splitRows(classes, 22, seed);
    CHECK(parts.first == splitRows(classes, 22, seed).first);
    auto held = parts.second;
    for (auto& row : held) ++often[static_cast<std::size_t>(row / 4)], row /= 4;
    REQUIRE((held.size() == 2 && held[0] != held[1]));
  }
  for (const auto count : often) CHECK(std::abs(count - 333) < 90);
  // Of 4 to train with, rounding takes all and each single row gets one: a drawn one of the large classes
  // gives it.
  Rows gave(2);
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    const auto large = inOrder({10, 10, 1, 1});
    const auto counts = countsOf(splitRows(large, 5, seed).first, large);
    REQUIRE((counts[0] + counts[1] == 3 && counts[2] == 1 && counts[3] == 1));
    ++gave[static_cast<std::size_t>(counts[0] < counts[1])];
  }
  CHECK((gave[0] > 20 && gave[1] > 20));  // binomial(100, 0.5) within 6 deviations
}

TEST_CASE("a split without equal remainders has the rows that it always had") {
  const auto classes = inOrder({7, 4, 2});
  CHECK(splitRows(classes, 9, 1).second == Rows{1, 4, 7, 12});
  CHECK(splitRows(classes, 9, 2).second == Rows{0, 1, 8, 12});
  CHECK(splitRows(classes, 9, 3).second == Rows{4, 5, 10, 12});
  CHECK(splitRows(10, 6, 5).second == Rows{0, 3, 7, 9});
}

TEST_CASE("every class has an example to train with, or the split is refused") {
  const auto classes = inOrder({97, 1, 1, 1});
  CHECK(countsOf(splitRows(classes, 10, 3).first, classes) == Rows{7, 1, 1, 1});
  CHECK(countsOf(splitRows(classes, 4, 3).first, classes) == Rows{1, 1, 1, 1});
  CHECK_REFUSED(splitRows(classes, 3, 3),
                "split: 3 examples to train with leave out a class; there are 4 classes, and each needs one");
  for (const auto& [count, first] : {std::pair(10, 0), {10, 11}, {-1, 1}})
    CHECK_THROWS_AS(splitRows(count, first, 1), InvalidArgument);
}

TEST_CASE("a limit of examples in order has all classes, of each the first examples") {
  CHECK(firstRows(inOrder({4, 4}), 4) == Rows{0, 1, 4, 5});
  CHECK(firstRows(inOrder({6, 2}), 4) == Rows{0, 1, 2, 6});
  CHECK(firstRows(Rows{5, -1, 5, -1, 5}, 2) == Rows{0, 1});
  CHECK(firstRows(inOrder({2, 1}), 9) == Rows{0, 1, 2});
  CHECK(firstRows(inOrder({1, 1, 1}), 2) == Rows{0, 1});
  CHECK_THROWS_AS(firstRows(inOrder({2}), 0), InvalidArgument);
}

TEST_CASE("tensors are split by their integer classes, other labels without") {
  Tensor features = Tensor::empty({10, 2}), classes = Tensor::empty({10}, DType::Int64);
  for (std::int64_t i = 0; i < 10; ++i) {
    features.data<float>()[2 * i] = features.data<float>()[2 * i + 1] = static_cast<float>(i);
    classes.data<std::int64_t>()[i] = i < 5 ? 7 : 3;
  }
  const auto [train, held] = split(features, classes, 0.8, 1);
  REQUIRE(train.features.shape() == Shape{8, 2});
  REQUIRE(held.labels.shape() == Shape{2});
  CHECK(std::ranges::count(train.labels.span<std::int64_t>(), 7) == 4);
  CHECK(held.labels.data<std::int64_t>()[0] != held.labels.data<std::int64_t>()[1]);
  for (std::int64_t i = 0; i < 8; ++i)  // rows stay with their labels
    CHECK((train.features.data<float>()[2 * i + 1] < 5) == (train.labels.data<std::int64_t>()[i] == 7));
  const auto [first, second] = split(features, Tensor::zeros({10, 3}), 0.75, 1);
  CHECK(first.labels.shape() == Shape{8, 3});
  CHECK(second.features.shape() == Shape{2, 2});
  CHECK(textOf(countOf(0.01, 10), countOf(0.99, 10)) == "1 9");
  for (const double fraction : {0.0, 1.0, -1.0, double{kNan}})
    CHECK_THROWS_AS(split(features, classes, fraction, 1), InvalidArgument);
  CHECK_THROWS_AS(split(features, Tensor::zeros({9}), 0.5, 1), InvalidArgument);
  CHECK_THROWS_AS(split(Tensor(), classes, 0.5, 1), InvalidArgument);
}

TEST_CASE("a subset has the examples of its rows") {
  struct Squares : Dataset {
    std::int64_t size() const override { return 10; }
    Example get(std::int64_t index) const override {
      return {Tensor::of({static_cast<float>(index * index)}, {1}), index};
    }
  } squares;
  const DatasetSubset some(squares, {3, 9});
  CHECK(some.size() == 2);
  CHECK(some.get(1).features.data<float>()[0] == 81);
  CHECK_THROWS(some.get(2));
}

}  // namespace
}  // namespace muster::test
