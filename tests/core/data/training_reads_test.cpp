#include "muster/core/data/training_reads.h"

#include "muster/core/data/in_parallel.h"
#include "muster/core/data/joining_iterator.h"
#include "muster/core/data/output_names.h"
#include "tests/support/test.h"
#include "tests/support/toy_data.h"

using namespace muster;
using namespace muster::test;

TEST_CASE("while a training reads an iterator, nothing else may read it or the one that it reads") {
  auto data = ToyIterator::ofValues({1, 2}), other = ToyIterator::ofValues({1, 2});
  JoiningIterator joined(data, 2);
  {
    const TrainingReads reads(joined);
    CHECK_NOTHROW(requireNotRead(other, "evaluate"));
    CHECK_REFUSED(requireNotRead(joined, "evaluate"),
                  "evaluate: the training reads this iterator and would miss batches; pass another one");
    CHECK_REFUSED(requireNotRead(data, "evaluate"),
                  "evaluate: the training reads this iterator, or one that it reads, and would miss batches; "
                  "pass another one");
    CHECK(thrown<InvalidArgument>([&] { const TrainingReads second(data); }) ==
          "fit: another training reads this iterator, or one that it reads, and both would miss batches; "
          "pass another one");
    CHECK_NOTHROW(TrainingReads{other});
  }
  CHECK_NOTHROW(requireNotRead(data, "evaluate"));
}

TEST_CASE("work in parallel is done once for each index, by several threads") {
  for (const int threads : {0, 1, 3}) {
    std::array<std::atomic<int>, 100> calls{};
    const auto work = [&](std::size_t i) { ++calls[i]; };
    inParallel(100, work, threads);
    CHECK(std::ranges::all_of(calls, [](const auto& count) { return count == 1; }));
  }
  CHECK_NOTHROW(inParallel(0, [](std::size_t) { throw Error("no index"); }));
}

TEST_CASE("of several failures in parallel the first by its index is thrown") {
  const auto work = [](std::size_t i) {
    if (i % 7 == 3) throw Error(fmt::format("index {}", i));
  };
  for (int again = 0; again < 20; ++again)
    CHECK(thrown<Error>([&] { inParallel(50, work, 4); }) == "index 3");
}

TEST_CASE("outputs are named by classes or by numbers to predict, not by both") {
  const InputDescription classes{.classes = {"no", "yes"}};
  const InputDescription numbers{.targets = {{.name = "price"}, {.name = "size"}}};
  CHECK(outputNames(classes) == std::vector<std::string>{"no", "yes"});
  CHECK(outputNames(numbers) == std::vector<std::string>{"price", "size"});
  CHECK(outputNames({}).empty());
  CHECK_THROWS_AS(outputNames({.classes = {"a"}, .targets = {{.name = "b"}}}), InvalidArgument);
  CHECK_NOTHROW(requireOutputs(classes, 2));
  CHECK_NOTHROW(requireOutputs(classes, 1));  // the probability of the second
  CHECK_NOTHROW(requireOutputs({}, 9));
  CHECK_THROWS_AS(requireOutputs(classes, 3), InvalidArgument);
  CHECK_THROWS_AS(requireOutputs(numbers, 1), InvalidArgument);
}
