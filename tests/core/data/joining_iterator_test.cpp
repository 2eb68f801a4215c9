#include "muster/core/data/joining_iterator.h"

#include "muster/core/data/in_memory.h"
#include "tests/support/list_iterator.h"
#include "tests/support/test.h"

namespace muster::test {
namespace {

/// Ten examples: example i has features {i} and label i mod 3.
InMemoryDataSetIterator tenExamples(std::int64_t batch, MemoryPlacement placement = MemoryPlacement::Host) {
  Tensor features = Tensor::empty({10, 1}), labels = Tensor::empty({10}, DType::Int64);
  for (std::int64_t i = 0; i < 10; ++i) {
    features.data<float>()[i] = static_cast<float>(i);
    labels.data<std::int64_t>()[i] = i % 3;
  }
  return InMemoryDataSetIterator(features, labels, batch, std::nullopt, placement);
}

Batch shapedBatch(const Shape& features, bool masked) {
  Batch batch;
  Batch::ensure(batch.features, "x", features);
  Batch::ensure(batch.labels, "y", {features[0]}, DType::Int64);
  if (masked) Batch::ensure(batch.masks, "mask", {features[0]}).span<float>()[0] = 0.5f;
  return batch;
}

TEST_CASE("a joining iterator joins batches in order, and the last of an epoch may be of fewer") {
  for (const auto placement : {MemoryPlacement::Host, MemoryPlacement::Device}) {
    auto data = tenExamples(2, placement);
    JoiningIterator joined(data, 3);
    CHECK(textOf(joined.examples().value(), joined.batchSize().value(), joined.batchesPerEpoch().value()) ==
          "10 6 2");
    Batch batch;
    for (std::int64_t epoch = 0; epoch < 2; ++epoch) {
      joined.reset(epoch);
      std::vector<float> seen;
      std::vector<std::int64_t> sizes;
      while (joined.next(batch)) {
        sizes.push_back(batch.examples());
        CHECK(batch.namesRows() == (placement == MemoryPlacement::Device));
        Batch whole;
        batch.gatherInto(whole);
        for (std::int64_t i = 0; i < batch.examples(); ++i) {
          seen.push_back(whole.features[0].value.data<float>()[i]);
          CHECK(whole.labels[0].value.data<std::int64_t>()[i] == static_cast<std::int64_t>(seen.back()) % 3);
        }
      }
      CHECK(sizes == std::vector<std::int64_t>{6, 4});
      CHECK(seen == std::vector<float>{0, 1, 2, 3, 4, 5, 6, 7, 8, 9});
      CHECK_FALSE(joined.next(batch));
    }
  }
}

TEST_CASE("a joining iterator skips whole joined batches") {
  auto data = tenExamples(2);
  JoiningIterator joined(data, 2), many(data, 32);
  joined.reset(0);
  CHECK(joined.skip(2) == 8);
  Batch batch;
  REQUIRE(joined.next(batch));
  CHECK(textOf(batch.examples(), batch.features[0].value.data<float>()[0]) == "2 8");
  // All batches if a number from a file would overflow.
  many.reset(0);
  CHECK(many.skip((std::int64_t{1} << 59) + 1) == 10);
  CHECK_FALSE(many.next(batch));
}

TEST_CASE("a joining iterator joins masks, and refuses batches that do not fit") {
  ListIterator masked({shapedBatch({2, 3}, true), shapedBatch({1, 3}, true)});
  JoiningIterator joined(masked, 2);
  Batch batch;
  joined.reset(0);
  REQUIRE(joined.next(batch));
  REQUIRE(batch.masks.size() == 1);
  CHECK(batch.masks[0].value.shape() == Shape{3});
  CHECK(batch.masks[0].value.data<float>()[2] == 0.5f);
  const auto problem = [](std::vector<Batch> batches) {
    ListIterator list(std::move(batches));
    JoiningIterator both(list, 2);
    Batch to;
    both.reset(0);
    return thrown<InvalidArgument>([&] { both.next(to); });
  };
  CHECK(problem({shapedBatch({2, 3}, true), shapedBatch({2, 3}, false)}) ==
        "accumulate: batches cannot be joined: one has 1 tensor where another has 0");
  CHECK(problem({shapedBatch({2, 3}, false), shapedBatch({2, 4}, false)}) ==
        "accumulate: batches cannot be joined: one has x float32 [2, 3] on cpu and another x float32 [2, 4] "
        "on cpu");
  CHECK_REFUSED(JoiningIterator(masked, 0), "accumulate: a step takes at least 1 batch, got 0");
}

}  // namespace
}  // namespace muster::test
